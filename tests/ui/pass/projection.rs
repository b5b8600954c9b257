//! Parts of kinds: fields by name and by path, lists, defaults, and metadata in part.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, Node, Pod, PodStatus, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::resource::{Resource, ResourceExt, Scope};
use windlass::{CustomResource, Projection};

type Result<T> = std::result::Result<T, ()>;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
pub struct PodView {
    pub metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    pub node: Option<String>,
    #[projection(path = ".spec.containers")]
    pub containers: Vec<Image>,
    #[projection(path = "status.phase", default)]
    pub phase: String,
    #[projection(path = "spec.terminationGracePeriodSeconds")]
    pub r#type: core::option::Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    pub name: String,
    pub image: Option<String>,
}

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
struct Parts {
    metadata: ObjectMeta,
    status: Option<PodStatus>,
    #[projection(path = "spec.initContainers")]
    first: Vec<Container>,
    #[projection(path = "spec.serviceAccountName")]
    account: String,
}

#[derive(Projection, Clone, Debug)]
#[projection(of = Node)]
struct NameOnly {
    metadata: ObjectMeta,
}

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(labels, annotations))]
struct Picks {
    metadata: ObjectMeta,
    #[projection(label = "app.kubernetes.io/name")]
    app: Option<String>,
    #[projection(annotation = "big")]
    big: Option<String>,
    #[projection(annotation = "small")]
    small: Option<String>,
}

/// Fields by Rust paths, beside one by a text below the same object.
#[derive(Projection, Clone, Debug)]
#[projection(of = Service)]
struct Addresses {
    metadata: ObjectMeta,
    #[projection(path = spec.cluster_ip)]
    address: Option<String>,
    #[projection(path = spec.external_ips)]
    outside: Vec<String>,
    #[projection(path = spec.type_, default)]
    kind: String,
    #[projection(path = "spec.sessionAffinity")]
    affinity: Option<String>,
}

/// Fields without a path are those of the kind, also under another name in JSON.
#[derive(Projection, Clone, Debug)]
#[projection(of = Secret)]
struct Kept {
    metadata: ObjectMeta,
    type_: Option<String>,
    immutable: Option<bool>,
    data: BTreeMap<String, ByteString>,
}

/// A word of Rust is a name in JSON.
#[derive(Projection, Clone, Debug)]
#[projection(of = Secret)]
struct Word {
    metadata: ObjectMeta,
    r#type: Option<String>,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Setting {
    metadata: ObjectMeta,
    #[serde(rename = "values")]
    content: BTreeMap<String, String>,
}

#[derive(Projection, Clone, Debug)]
#[projection(of = Setting)]
struct SettingView {
    metadata: ObjectMeta,
    content: BTreeMap<String, String>,
}

fn own_names() {
    let secret = json!({"metadata": {"name": "a"}, "type": "Opaque", "immutable": true, "data": {"a": "eA=="}});
    let kept: Kept = serde_json::from_value(secret.clone()).unwrap();
    assert_eq!((kept.type_.as_deref(), kept.immutable), (Some("Opaque"), Some(true)));
    assert_eq!(kept.data["a"].0, b"x");
    assert_eq!(serde_json::to_value(&kept).unwrap(), secret);
    let word: Word = serde_json::from_value(secret).unwrap();
    assert_eq!(word.r#type.as_deref(), Some("Opaque"));
    let paths: Vec<_> = Kept::projected().iter().map(|path| path.join(".")).collect();
    assert_eq!(paths, ["metadata", "type", "immutable", "data"]);

    let setting = json!({"metadata": {"name": "a"}, "values": {"a": "x"}});
    let view: SettingView = serde_json::from_value(setting.clone()).unwrap();
    assert_eq!(view.content["a"], "x");
    assert_eq!(serde_json::to_value(&view).unwrap(), setting);
    assert_eq!(SettingView::projected()[1], ["values"]);
}

fn rust_paths() {
    let service = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "10.0.0.1", "type": "ClusterIP",
        "externalIPs": ["b"], "sessionAffinity": "None", "ports": []}});
    let view: Addresses = serde_json::from_value(service.clone()).unwrap();
    assert_eq!((view.address.as_deref(), view.kind.as_str()), (Some("10.0.0.1"), "ClusterIP"));
    assert_eq!((view.outside.len(), view.affinity.as_deref()), (1, Some("None")));
    let written = serde_json::to_value(&view).unwrap();
    assert_eq!(written["spec"]["clusterIP"], service["spec"]["clusterIP"]);
    assert_eq!(written["spec"]["type"], service["spec"]["type"]);
    let paths: Vec<_> = Addresses::projected().iter().map(|path| path.join(".")).collect();
    let expected =
        ["metadata", "spec.clusterIP", "spec.externalIPs", "spec.type", "spec.sessionAffinity"];
    assert_eq!(paths, expected);
}

pub fn main() -> Result<()> {
    own_names();
    rust_paths();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "finalizers": ["a.dev/b"], "labels": {"app": "x"}, "annotations": {"big": "data"}},
        "spec": {"nodeName": "n1", "volumes": [{"name": "v"}], "serviceAccountName": "default",
            "containers": [{"name": "c", "image": "i:1", "env": []}, {"name": "d"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    });
    let view: PodView = serde_json::from_value(pod.clone()).unwrap();
    assert_eq!((view.node.as_deref(), view.phase.as_str()), (Some("n1"), "Running"));
    assert_eq!(view.containers.len(), 2);
    assert_eq!((view.label("app"), view.annotation("big")), (Some("x"), None));
    assert!(view.has_finalizer("a.dev/b") && view.r#type.is_none());
    assert_eq!(
        serde_json::to_value(&view).unwrap(),
        json!({
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "finalizers": ["a.dev/b"], "labels": {"app": "x"}},
            "spec": {"nodeName": "n1",
                "containers": [{"name": "c", "image": "i:1"}, {"name": "d", "image": null}]},
            "status": {"phase": "Running"},
        })
    );
    let text = serde_json::to_string(&view).unwrap();
    let back: PodView = serde_json::from_str(&text).unwrap();
    assert_eq!(back.containers, view.containers);

    let bare = json!({"metadata": {"name": "a"}, "spec": null, "status": {"phase": null}});
    let view: PodView = serde_json::from_value(bare.clone()).unwrap();
    assert!(view.node.is_none() && view.containers.is_empty() && view.phase.is_empty());
    let missing = serde_json::from_value::<Parts>(bare).unwrap_err().to_string();
    assert!(missing.contains("spec.serviceAccountName"), "{missing}");
    let twice = r#"{"metadata":{},"spec":{"nodeName":"a","nodeName":"b"}}"#;
    assert!(serde_json::from_str::<PodView>(twice).is_err());
    assert!(serde_json::from_str::<PodView>(r#"{"spec":[]}"#).is_err());

    let parts: Parts = serde_json::from_value(pod).unwrap();
    assert_eq!(parts.account, "default");
    assert!(parts.first.is_empty() && parts.status.is_some());
    assert_eq!(parts.metadata.annotations.unwrap().len(), 1);

    let labelled = json!({"metadata": {"name": "a",
        "labels": {"app.kubernetes.io/name": "x", "other": "y"},
        "annotations": {"big": "da\nta", "more": "z"}}, "spec": {}});
    let picks: Picks = serde_json::from_value(labelled.clone()).unwrap();
    assert_eq!((picks.app.as_deref(), picks.big.as_deref()), (Some("x"), Some("da\nta")));
    assert!(picks.small.is_none() && picks.metadata.labels.is_none());
    let picks: Picks = serde_json::from_str(&labelled.to_string()).unwrap();
    assert_eq!(
        serde_json::to_value(&picks).unwrap(),
        json!({"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"},
            "annotations": {"big": "da\nta"}}})
    );

    let info = PodView::static_info().unwrap();
    assert_eq!((&*info.plural, info.scope), ("pods", Scope::Namespaced));
    assert_eq!(NameOnly::static_info().unwrap().scope, Scope::Cluster);
    assert!(PodView::projection().is_some_and(|name| name.ends_with("PodView")));
    assert!(Pod::projection().is_none());
    Ok(())
}
