//! Children of many kinds, as a server stores them: an operator that restarts finds them as
//! intended.

mod lists;

use std::sync::{Arc, Mutex};

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};
use tower::layer::layer_fn;
use tower::{Service as _, ServiceExt, service_fn};
use windlass::api::{Api, Patch};
use windlass::client::{Client, ClientConfig, HttpRequest, Stack};
use windlass::prelude::*;
use windlass::testing::TestCluster;

use crate::gadget::{Gadget, gadget};

#[derive(Debug, Controller)]
#[controller(for = Gadget, name = "parts",
    owns(ConfigMap, Deployment, NetworkPolicy, Role, RoleBinding, Service, StatefulSet))]
struct Parts;

impl Reconciler for Parts {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let name = gadget.name();
        cx.apply_owned(part::<ConfigMap>(name, json!({ "data": { "color": gadget.spec.color } })))
            .await?;
        cx.apply_owned(part::<Deployment>(name, deployment())).await?;
        cx.apply_owned(part::<StatefulSet>(name, stateful_set(name))).await?;
        cx.apply_owned(part::<Service>(name, service())).await?;
        cx.apply_owned(part::<NetworkPolicy>(name, policy())).await?;
        let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] }]);
        cx.apply_owned(part::<Role>(name, json!({ "rules": rules }))).await?;
        cx.apply_owned(part::<RoleBinding>(name, binding(name))).await?;
        Ok(Action::done())
    }
}

fn part<K: serde::de::DeserializeOwned>(name: &str, mut content: Value) -> K {
    content["metadata"] = json!({ "name": name, "labels": { "app": name } });
    serde_json::from_value(content).unwrap()
}

fn pod() -> Value {
    json!({ "metadata": { "labels": { "app": "x" } }, "spec": {
        "serviceAccountName": "default", "hostNetwork": false, "nodeSelector": { "disk": "ssd" },
        "tolerations": [{ "key": "a", "operator": "Exists", "effect": "NoSchedule" }],
        "containers": [{ "name": "web", "image": "nginx", "args": ["-g", "daemon off;"],
            "env": [{ "name": "A", "value": "1" },
                { "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                { "name": "CPU", "valueFrom": { "resourceFieldRef": { "resource": "limits.cpu" } } }],
            "envFrom": [{ "configMapRef": { "name": "x", "optional": true } }],
            "ports": [{ "containerPort": 53 }, { "containerPort": 53, "protocol": "UDP" }],
            "resources": { "limits": { "cpu": "1000m", "memory": "1024Mi" }, "requests": { "cpu": "0.5" } },
            "readinessProbe": { "httpGet": { "path": "/", "port": 53 } },
            "securityContext": { "privileged": false, "capabilities": { "drop": ["ALL"] } },
            "volumeMounts": [{ "name": "scratch", "mountPath": "/tmp" }, { "name": "all", "mountPath": "/all" }] }],
        "volumes": [{ "name": "scratch", "emptyDir": {} },
            { "name": "all", "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } },
                { "downwardAPI": { "items": [{ "path": "l", "fieldRef": { "fieldPath": "metadata.labels" } }] } }] } }] } })
}

fn deployment() -> Value {
    json!({ "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "x" } }, "template": pod(),
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "25%" } } } })
}

fn stateful_set(name: &str) -> Value {
    let claim = json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1024Mi" } } } });
    json!({ "spec": { "replicas": 0, "serviceName": name, "selector": { "matchLabels": { "app": "x" } },
        "template": pod(), "volumeClaimTemplates": [claim] } })
}

fn service() -> Value {
    json!({ "spec": { "selector": { "app": "x" }, "ports": [{ "name": "tcp", "port": 53 },
        { "name": "udp", "port": 53, "protocol": "UDP", "targetPort": 53 }] } })
}

fn policy() -> Value {
    json!({ "spec": { "podSelector": { "matchLabels": { "app": "x" } }, "policyTypes": ["Ingress"],
        "ingress": [{ "from": [{ "podSelector": {} }], "ports": [{ "port": 53 }] }] } })
}

fn binding(name: &str) -> Value {
    json!({ "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "User", "name": "ann" }, { "kind": "ServiceAccount", "name": "default" }] })
}

/// Returns a client that notes the paths of all writes to children.
async fn noting(cluster: &TestCluster, writes: &Arc<Mutex<Vec<String>>>) -> Client {
    let writes = Arc::clone(writes);
    let layer = layer_fn(move |stack: Stack| {
        let writes = Arc::clone(&writes);
        service_fn(move |request: HttpRequest| {
            let mut stack = stack.clone();
            let path = request.uri().path();
            let is_write = !["GET", "HEAD"].contains(&request.method().as_str());
            if is_write && !path.contains("/events") && !path.contains("/gadgets") {
                writes.lock().unwrap().push(format!("{} {path}", request.method()));
            }
            async move { stack.ready().await?.call(request).await }
        })
    });
    let config = ClientConfig::from_yaml(&cluster.kubeconfig().await, None).unwrap();
    Client::builder().config(config).layer(layer).build().unwrap()
}

#[tokio::test]
async fn an_operator_that_restarts_sends_nothing_for_children_that_are_as_intended() {
    let cluster = TestCluster::start().await;
    cluster.install::<Gadget>().await;
    let client = cluster.client();
    let gadgets: Api<Gadget> = client.namespace(cluster.namespace());
    gadgets.create(&gadget("home", "red")).await.unwrap();
    let running = cluster.spawn_unrestricted(Manager::new(client.clone()).controller(Parts));
    running.settled().await;
    running.stop().await;
    let theirs = json!({ "metadata": { "annotations": { "theirs": "1" } } });
    let deployments: Api<Deployment> = client.namespace(cluster.namespace());
    deployments.patch("home", Patch::Merge(theirs)).await.unwrap();
    let writes = Arc::default();
    let manager = Manager::new(noting(&cluster, &writes).await).controller(Parts);
    let running = cluster.spawn_unrestricted(manager);
    running.settled().await;
    assert_eq!(*writes.lock().unwrap(), Vec::<String>::new());
    // The changed child is set back by a single request.
    let scaled = json!({ "spec": { "replicas": 1, "template": { "spec": { "terminationGracePeriodSeconds": 5 } } } });
    deployments.patch("home", Patch::Merge(scaled)).await.unwrap();
    running.settled().await;
    let now = deployments.get("home").await.unwrap().spec.unwrap();
    let grace = now.template.spec.unwrap().termination_grace_period_seconds;
    assert_eq!((now.replicas, grace), (Some(0), Some(5)));
    assert_eq!(writes.lock().unwrap().len(), 1, "{:?}", writes.lock().unwrap());
    running.stop().await;
}
