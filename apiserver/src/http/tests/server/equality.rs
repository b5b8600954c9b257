//! Objects that differ in nothing but empty lists and maps, or in the spelling of amounts.

use serde_json::{Value, json};

use crate::http::test_support::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// Empty values of a Pod, by place.
fn empties() -> Value {
    json!({"metadata": {"labels": {}, "annotations": {}}, "spec": {
        "nodeSelector": {}, "hostAliases": [], "readinessGates": [], "imagePullSecrets": []}})
}

/// Returns a Pod with a container, and further values.
fn pod(more: &Value) -> Value {
    let containers = json!([{"name": "c", "image": "i", "env": [], "resources": {"limits": {}}}]);
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": containers}});
    for part in ["metadata", "spec"] {
        for (field, value) in more[part].as_object().into_iter().flatten() {
            pod[part][field] = value.clone();
        }
    }
    pod
}

/// Whether an object shows none of the empty values of [`empties`].
fn is_plain(shown: &Value) -> bool {
    let names = |part: &str| empties()[part].as_object().cloned().unwrap_or_default();
    ["metadata", "spec"].into_iter().all(|part| {
        names(part).keys().all(|field| shown[part].get(field).is_none_or(Value::is_null))
    }) && shown["spec"]["containers"][0]["resources"] == json!({})
        && shown["spec"]["containers"][0].get("env").is_none()
}

#[tokio::test(start_paused = true)]
async fn empty_lists_and_maps_are_neither_stored_nor_shown() {
    let (_server, mut client) = start().await;
    let made = client.post(PODS, pod(&empties())).await;
    assert_eq!((made.code, is_plain(&made.value)), (201, true), "{}", made.text);
    let url = format!("{PODS}/p");
    for form in ["merge", "strategic-merge"] {
        let patched = client.patch(form, &url, empties()).await;
        assert_eq!((patched.code, is_plain(&patched.value)), (200, true), "{}", patched.text);
        assert_eq!(patched.version(), made.version(), "{form}: nothing is stored");
    }
    let added = json!([{"op": "add", "path": "/spec/nodeSelector", "value": {}}]);
    let patched = client.patch("json", &url, added).await;
    assert_eq!((patched.code, patched.version()), (200, made.version()), "{}", patched.text);
    let mut replaced = made.value.clone();
    replaced["spec"]["nodeSelector"] = json!({});
    replaced["spec"]["hostAliases"] = json!([]);
    let put = client.put(&url, replaced).await;
    assert_eq!((put.code, is_plain(&put.value)), (200, true), "{}", put.text);
    assert_eq!(put.version(), made.version(), "PUT: nothing is stored");

    let applied = format!("{PODS}/q?fieldManager=m");
    let mut intent = pod(&empties());
    intent["metadata"]["name"] = json!("q");
    for code in [201, 200] {
        let reply = client.patch("apply", &applied, intent.clone()).await;
        assert_eq!((reply.code, is_plain(&reply.value)), (code, true), "{}", reply.text);
    }
}

/// Returns a Job that is suspended, or not.
fn job(is_suspended: bool) -> Value {
    json!({"metadata": {"name": "j"}, "spec": {"suspend": is_suspended, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"memory": "1Gi"}}}]}}}})
}

/// Changes that are none.
fn same() -> Value {
    json!({"spec": {"template": {"spec": {"nodeSelector": {}, "tolerations": [], "containers": [
        {"name": "c", "image": "i", "resources": {"limits": {"memory": "1073741824"}}}]}}}})
}

#[tokio::test(start_paused = true)]
async fn a_template_in_another_spelling_is_no_other_template() {
    let (_server, mut client) = start().await;
    for is_suspended in [false, true] {
        let mut new = job(is_suspended);
        new["metadata"]["name"] = json!(format!("j-{is_suspended}"));
        let url = format!("{JOBS}/j-{is_suspended}");
        let made = client.post(JOBS, new).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let changed = client.patch("strategic-merge", &url, same()).await;
        assert_eq!(changed.code, 200, "suspended: {is_suspended}: {}", changed.text);
        assert_eq!(changed.value["metadata"]["generation"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_generation_grows_with_the_spec_and_not_with_its_spelling() {
    let (_server, mut client) = start().await;
    let mut new = deployment("d", 1);
    new["spec"]["template"]["spec"] = job(false)["spec"]["template"]["spec"].clone();
    new["spec"]["template"]["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(client.post(DEPLOYMENTS, new).await.code, 201);
    let url = format!("{DEPLOYMENTS}/d");
    let spelled = client.patch("strategic-merge", &url, same()).await;
    assert_eq!(spelled.value["metadata"]["generation"], 1, "{}", spelled.text);
    let limits = &spelled.value["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits["memory"], "1073741824", "the new spelling is stored");
    let other = client.merge(&url, json!({"spec": {"replicas": 2}})).await;
    assert_eq!(other.value["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn the_parts_of_a_set_that_stay_may_be_spelled_anew() {
    let (_server, mut client) = start().await;
    let template = |size: &str| {
        json!([{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}}])
    };
    let mut set = deployment("s", 1);
    set["spec"]["serviceName"] = json!("s");
    set["spec"]["volumeClaimTemplates"] = template("1Gi");
    let made = client.post(SETS, set).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let url = format!("{SETS}/s");
    let change = |size: &str| json!({"spec": {"volumeClaimTemplates": template(size)}});
    let spelled = client.merge(&url, change("1073741824")).await;
    assert_eq!((spelled.code, &spelled.value["metadata"]["generation"]), (200, &json!(1)));
    assert_eq!(client.merge(&url, change("2Gi")).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn claims_and_volumes_may_be_spelled_anew() {
    let (_server, mut client) = start().await;
    let spec = |size: &str| {
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size},
            "limits": {}}, "selector": null})
    };
    let claim = json!({"metadata": {"name": "c"}, "spec": spec("1Gi")});
    assert_eq!(client.post(CLAIMS, claim).await.code, 201);
    let url = format!("{CLAIMS}/c");
    let spelled = client.merge(&url, json!({"spec": spec("1073741824")})).await;
    assert_eq!(spelled.code, 200, "{}", spelled.text);
    assert_eq!(client.merge(&url, json!({"spec": spec("2Gi")})).await.code, 422);

    let source = |attributes: Value| {
        json!({"spec": {"csi": {"driver": "d.io", "volumeHandle": "h",
            "volumeAttributes": attributes}}})
    };
    let mut volume = source(json!({}));
    volume["metadata"] = json!({"name": "v"});
    volume["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
    volume["spec"]["capacity"] = json!({"storage": "1Gi"});
    let made = client.post(VOLUMES, volume).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let url = format!("{VOLUMES}/v");
    assert_eq!(client.merge(&url, source(json!({}))).await.code, 200);
    assert_eq!(client.merge(&url, source(json!({"a": "b"}))).await.code, 422);
}

#[tokio::test(start_paused = true)]
async fn fixed_maps_and_lists_may_be_given_empty() {
    let (_server, mut client) = start().await;
    for (url, object, change) in [
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"provisioner": "p.io"}),
            json!({"parameters": {}, "mountOptions": []}),
        ),
        (
            "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
            json!({"storageClassName": "c", "nodeTopology": {"matchLabels": {"a": "b"}}}),
            json!({"nodeTopology": {"matchLabels": {"a": "b"}, "matchExpressions": []}}),
        ),
        (
            "/apis/storage.k8s.io/v1/csinodes",
            json!({"spec": {"drivers": [{"name": "d.io", "nodeID": "n", "topologyKeys": null}]}}),
            json!({"spec": {"drivers": [{"name": "d.io", "nodeID": "n", "topologyKeys": []}]}}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            json!({"spec": {"devices": {"requests": [
                {"name": "r", "exactly": {"deviceClassName": "c"}}]}}}),
            json!({"spec": {"devices": {"constraints": [], "config": []}}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            json!({"spec": {"selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [
                    {"name": "c", "image": "i"}]}}}}),
            json!({"spec": {"selector": {"matchExpressions": []}}}),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            json!({"spec": {"hard": {"pods": "1"}}}),
            json!({"spec": {"scopes": [], "hard": {"pods": "1000m"}}}),
        ),
    ] {
        let mut object = object;
        object["metadata"] = json!({"name": "x"});
        let made = client.post(url, object).await;
        assert_eq!(made.code, 201, "{}", made.text);
        let changed = client.merge(&format!("{url}/x"), change).await;
        assert_eq!((changed.code, changed.version()), (200, made.version()), "{}", changed.text);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_that_is_sent_counts_as_a_change_of_a_network_policy() {
    let (_server, mut client) = start().await;
    let all = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let made =
        client.post(all, json!({"metadata": {"name": "p"}, "spec": {"podSelector": {}}})).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let url = format!("{all}/p");
    for (generation, spec) in [
        (2, json!({"ingress": []})),
        (3, json!({"podSelector": {"matchLabels": {}}})),
        (3, json!({"podSelector": {}})),
        (4, json!({"ingress": [{"from": []}]})),
        (4, json!({"ingress": [{}]})),
    ] {
        let changed = client.merge(&url, json!({ "spec": spec })).await;
        assert_eq!(changed.value["metadata"]["generation"], generation, "{}", changed.text);
        assert!(changed.value["spec"]["podSelector"].get("matchLabels").is_none());
        let owners = &changed.value["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
        assert!(owners.get("f:egress").is_none(), "{owners}");
    }
}

#[tokio::test(start_paused = true)]
async fn empty_values_of_an_apply_count_like_those_of_other_writes() {
    let (_server, mut client) = start().await;
    let policy = |spec: Value| {
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "p"}, "spec": spec})
    };
    let url = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies/p?fieldManager=m";
    client.patch("apply", url, policy(json!({"podSelector": {}}))).await;
    let changed =
        client.patch("apply", url, policy(json!({"podSelector": {}, "ingress": []}))).await;
    assert_eq!(changed.value["metadata"]["generation"], 2, "{}", changed.text);
    let mut fixed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
        "immutable": true});
    let url = format!("{MAPS}/c?fieldManager=m");
    assert_eq!(client.patch("apply", &url, fixed.clone()).await.code, 201);
    assert_eq!(client.patch("apply", &url, fixed.clone()).await.code, 200);
    fixed["binaryData"] = json!({});
    assert_eq!(client.patch("apply", &url, fixed).await.code, 422, "as by a PUT");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"capacity": {"cpu": "1"}}});
    let made = client.patch("apply", "/api/v1/nodes/n?fieldManager=m", node).await;
    assert_eq!(made.value["status"]["capacity"]["cpu"], "1", "{}", made.text);
}

#[tokio::test(start_paused = true)]
async fn an_empty_overhead_needs_a_class_with_an_overhead() {
    let (_server, mut client) = start().await;
    let class = json!({"metadata": {"name": "r"}, "handler": "h",
        "overhead": {"podFixed": {"memory": "1Gi"}}});
    let made = client.post("/apis/node.k8s.io/v1/runtimeclasses", class).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let url = format!("{PODS}?dryRun=All");
    for (code, spec) in [
        (403, json!({"overhead": {}})),
        (201, json!({"overhead": {}, "runtimeClassName": "r"})),
        (201, json!({"overhead": {"memory": "1073741824"}, "runtimeClassName": "r"})),
        (403, json!({"overhead": {"memory": "1"}, "runtimeClassName": "r"})),
    ] {
        let made = client.post(&url, pod(&json!({ "spec": spec }))).await;
        assert_eq!(made.code, code, "{spec}: {}", made.text);
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_may_be_given_an_empty_affinity() {
    let (_server, mut client) = start().await;
    assert_eq!(client.post(JOBS, job(true)).await.code, 201);
    let url = format!("{JOBS}/j");
    let with = |affinity: Value| json!({"spec": {"template": {"spec": {"affinity": affinity}}}});
    for (code, affinity) in [
        (200, json!({})),
        (200, json!({"nodeAffinity": {}})),
        (422, json!({"podAffinity": {}})),
        (200, Value::Null),
    ] {
        let changed = client.merge(&url, with(affinity)).await;
        assert_eq!(changed.code, code, "{}", changed.text);
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_and_claims_keep_a_class_of_attributes() {
    let (_server, mut client) = start().await;
    let spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
        "volumeAttributesClassName": "a", "csi": {"driver": "d.io", "volumeHandle": "h"}});
    let made = client.post(VOLUMES, json!({"metadata": {"name": "v"}, "spec": spec})).await;
    assert_eq!(made.code, 201, "{}", made.text);
    let class = |name: Value| json!({"spec": {"volumeAttributesClassName": name}});
    let url = format!("{VOLUMES}/v");
    assert_eq!(client.merge(&url, class(json!("b"))).await.code, 200);
    let refused = client.merge(&url, class(Value::Null)).await;
    assert!(refused.message().ends_with("update from non-nil value to nil is forbidden"));

    let spec = json!({"accessModes": ["ReadWriteOnce"], "volumeAttributesClassName": "a",
        "resources": {"requests": {"storage": "1Gi"}}});
    assert_eq!(
        client.post(CLAIMS, json!({"metadata": {"name": "c"}, "spec": spec})).await.code,
        201
    );
    let url = format!("{CLAIMS}/c");
    let status = json!({"status": {"phase": "Bound", "currentVolumeAttributesClassName": "a"}});
    assert_eq!(client.merge(&format!("{url}/status"), status).await.code, 200);
    assert_eq!(client.merge(&url, class(json!("b"))).await.code, 200);
    for (value, what) in [(Value::Null, "nil"), (json!(""), "empty string")] {
        let refused = client.merge(&url, class(value)).await;
        assert!(refused.message().contains(&format!("update to {what} is forbidden")));
    }
}
