//! Objects as an API server writes them, made from a seed: pods of 8.4 KB, a third of which are
//! managed fields, and custom resources of 1 KB.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;
use windlass::prelude::*;

/// A custom resource with little in it.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub(crate) struct Widget {
    metadata: ObjectMeta,
    spec: WidgetSpec,
}

/// Specification of a widget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WidgetSpec {
    /// Maker of the widget.
    pub(crate) maker: String,
    /// Number of pieces.
    pub(crate) count: u32,
    /// Parts of the widget.
    pub(crate) parts: Vec<Part>,
}

/// A part of a widget.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) struct Part {
    /// Its name.
    pub(crate) name: String,
    /// Its size.
    pub(crate) size: u32,
}

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 8.4 KB.
    Pod,
    /// 1 KB.
    Widget,
}

impl Kind {
    /// `kind` and `apiVersion`, which stand in watch events and not in the items of a list.
    fn type_meta(self) -> &'static str {
        match self {
            Self::Pod => r#""kind":"Pod","apiVersion":"v1","#,
            Self::Widget => r#""apiVersion":"example.dev/v1","kind":"Widget","#,
        }
    }

    /// Returns the object with that number at that version, without the opening brace and the type.
    fn rest(self, number: usize, version: usize) -> String {
        match self {
            Self::Pod => pod(number, version),
            Self::Widget => widget(number, version),
        }
    }

    /// Returns a list of `count` objects, all at `version`.
    pub(crate) fn list(self, count: usize, version: usize) -> Vec<u8> {
        let mut body = format!(
            r#"{{"kind":"List","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#
        );
        for number in 0..count {
            body.push_str(if number == 0 { "{" } else { ",{" });
            body.push_str(&self.rest(number, version));
        }
        body.push_str("]}\n");
        body.into_bytes()
    }

    /// Returns a watch that reports each of `count` objects once, all at `version`.
    pub(crate) fn watch(self, count: usize, version: usize) -> Vec<u8> {
        let mut body = String::new();
        for number in 0..count {
            let _ = writeln!(
                body,
                r#"{{"type":"MODIFIED","object":{{{}{}}}"#,
                self.type_meta(),
                self.rest(number, version)
            );
        }
        body.into_bytes()
    }
}

fn metadata(number: usize, version: usize, managed: &str, more: &str) -> String {
    let app = number / 20;
    // Texts vary in length from version to version, as time stamps and messages do.
    let note = "x".repeat((number * 7 + version * 13) % 24);
    format!(
        r#""metadata":{{"name":"app-{app:04}-7d4b9c6f5-{number:06}","namespace":"team-{:02}","uid":"9a1e6d6e-6a0b-4d2c-8f39-{number:012}","resourceVersion":"{}","creationTimestamp":"2026-01-02T03:04:05Z","labels":{{"app":"app-{app:04}","pod-template-hash":"7d4b9c6f5"}},"annotations":{{"example.dev/note":"{note}"}}{more},"managedFields":[{managed}]}}"#,
        app % 50,
        1_000_000 + version * 10_000 + number,
    )
}

fn managed(manager: &str, fields: usize) -> String {
    let mut text = format!(
        r#"{{"manager":"{manager}","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{{"f:metadata":{{"f:labels":{{".":{{}},"f:app":{{}}}}}},"f:spec":{{"#
    );
    for at in 0..fields {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(text, r#"{comma}"f:field-{at:02}":{{".":{{}},"f:name":{{}}}}"#);
    }
    text.push_str("}}}");
    text
}

fn container(at: usize) -> String {
    let mut text = format!(
        r#"{{"name":"container-{at}","image":"registry.example/shop/container-{at}:1.2.3","ports":[{{"name":"http","containerPort":8080,"protocol":"TCP"}}],"env":["#
    );
    for n in 0..9 {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"name":"VARIABLE_{n}","value":"http://service-{n}.shop.svc.cluster.local:8080/path"}}"#
        );
    }
    text.push_str(r#"],"resources":{"limits":{"cpu":"500m","memory":"128Mi"},"requests":{"cpu":"10m","memory":"64Mi"}},"volumeMounts":["#);
    for n in 0..3 {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"name":"volume-{n}","readOnly":true,"mountPath":"/var/run/secrets/{n}"}}"#
        );
    }
    text.push_str(r#"],"livenessProbe":{"httpGet":{"path":"/healthz","port":8080,"scheme":"HTTP"},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}"#);
    text
}

fn pod(number: usize, version: usize) -> String {
    let managed = [managed("kube-controller-manager", 32), managed("kubelet", 30)].join(",");
    let owner = format!(
        r#","ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"app-{:04}-7d4b9c6f5","uid":"0a1e6d6e-6a0b-4d2c-8f39-{:012}","controller":true,"blockOwnerDeletion":true}}]"#,
        number / 20,
        number / 20
    );
    let conditions: Vec<_> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .iter()
        .map(|kind| {
            format!(
                r#"{{"type":"{kind}","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}}"#
            )
        })
        .collect();
    let statuses: Vec<_> = (0..2)
        .map(|at| {
            format!(
                r#"{{"name":"container-{at}","state":{{"running":{{"startedAt":"2026-01-02T03:04:05Z"}}}},"lastState":{{}},"ready":true,"restartCount":{},"image":"registry.example/shop/container-{at}:1.2.3","imageID":"registry.example/shop@sha256:9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015","containerID":"containerd://9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015","started":true}}"#,
                version % 10
            )
        })
        .collect();
    format!(
        r#"{},"spec":{{"volumes":[{{"name":"volume-0","projected":{{"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}},{{"configMap":{{"name":"kube-root-ca.crt","items":[{{"key":"ca.crt","path":"ca.crt"}}]}}}}],"defaultMode":420}}}},{{"name":"volume-1","emptyDir":{{}}}},{{"name":"volume-2","configMap":{{"name":"settings","defaultMode":420}}}}],"containers":[{},{}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"shop","serviceAccount":"shop","nodeName":"node-{:03}","securityContext":{{}},"schedulerName":"default-scheduler","tolerations":[{{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}}],"priority":0,"enableServiceLinks":true}},"status":{{"phase":"Running","conditions":[{}],"hostIP":"10.0.0.1","podIP":"10.1.{}.{}","startTime":"2026-01-02T03:04:05Z","containerStatuses":[{}],"qosClass":"Burstable"}}}}"#,
        metadata(number, version, &managed, &owner),
        container(0),
        container(1),
        // The node changes every fourth version: an index value that changes.
        (number + version / 4) % 100,
        conditions.join(","),
        number / 250,
        number % 250,
        statuses.join(",")
    )
}

fn widget(number: usize, version: usize) -> String {
    format!(
        r#"{},"spec":{{"maker":"maker-{:02}","count":{version},"parts":[{{"name":"wheel","size":4}},{{"name":"axle","size":2}},{{"name":"frame","size":1}},{{"name":"bolt","size":32}}]}}}}"#,
        metadata(number, version, &managed("kubectl", 6), ""),
        (number + version / 4) % 20,
    )
}
