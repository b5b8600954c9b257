//! The printed Role of each form of a grant.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use serde_json::json;

use super::*;
use crate::controller::{Action, Context, Result};
use windlass_cache::informer::CacheOptions;
use windlass_core::rbac::verbs;

struct Sites;

impl Reconciler for Sites {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn manager(builder: ControllerBuilder<Sites>) -> Manager {
    Manager::new(nowhere()).name("ops").controller_with(Sites, builder)
}

#[tokio::test]
async fn names_subresources_and_paths_are_printed_as_rbac_has_them() {
    let builder = ControllerBuilder::new()
        .can::<verbs::DeleteCollection, Pod>()
        .can_on::<Secret>("Secret", None, &["tls", "ca"], &["get"])
        .can_on::<Secret>("Secret", None, &["ca", "tls"], &["update"])
        .can_on::<Pod>("core::v1::Pod/eviction", Some("eviction"), &[], &["create"])
        .grant(Rule::of_resource("signers.certificates.k8s.io", &["approve"]).named(["a.b/c"]))
        .grant(Rule::of_url("/metrics", &["get"]));
    let manager = manager(builder);
    let roles = manager.roles(&ManifestOptions::default()).unwrap();
    let rules = roles[0]["rules"].as_array().unwrap();
    for rule in [
        json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["deletecollection"] }),
        json!({ "apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"] }),
        json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["ca", "tls"],
            "verbs": ["get", "update"],
        }),
        json!({
            "apiGroups": ["certificates.k8s.io"], "resources": ["signers"],
            "resourceNames": ["a.b/c"], "verbs": ["approve"],
        }),
        json!({ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }),
    ] {
        assert!(rules.contains(&rule), "{rule} not in {rules:#?}");
    }
    let grants: Vec<String> = manager.grants().into_iter().map(|(text, _)| text).collect();
    let expected = [
        "deletecollection Pod",
        r#"get Secret["tls", "ca"]"#,
        r#"update Secret["ca", "tls"]"#,
        "create core::v1::Pod/eviction",
        r#"approve "signers.certificates.k8s.io"["a.b/c"]"#,
        r#"get "/metrics""#,
    ];
    assert_eq!(grants, expected);
}

#[tokio::test]
async fn a_grant_on_a_path_is_refused_in_the_roles_of_namespaces() {
    let builder = ControllerBuilder::new().grant(Rule::of_url("/metrics", &["get"]));
    let manager = manager(builder).namespaces(["a"]);
    let error = manager.manifests(&ManifestOptions::default()).unwrap_err();
    assert!(error.to_string().contains("\"configmap\" needs to get /metrics"), "{error}");
}

#[tokio::test]
async fn the_kind_of_a_cache_that_no_controller_uses_is_printed_for_reading() {
    let manager = Manager::new(nowhere()).name("ops").cache::<Secret>(CacheOptions::default());
    let roles = manager.roles(&ManifestOptions::default()).unwrap();
    let read = json!({
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"],
    });
    // An object that cannot be decoded is reported by an event.
    let events = json!({
        "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"],
    });
    assert_eq!(roles[0]["rules"], json!([read, events]));
}

#[tokio::test]
async fn a_cache_of_a_cluster_scoped_kind_is_refused_in_the_roles_of_namespaces() {
    let manager = Manager::new(nowhere())
        .name("ops")
        .cache::<Node>(CacheOptions::default())
        .namespaces(["a"]);
    let error = manager.manifests(&ManifestOptions::default()).unwrap_err();
    assert!(error.to_string().contains("a cache needs to get, list, watch nodes"), "{error}");
}
