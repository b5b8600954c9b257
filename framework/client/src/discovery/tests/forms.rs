//! The aggregated form, the legacy form, and documents of neither form.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::*;
use windlass_core::resource::Scope;

fn api_versions() -> Reply {
    ok(json!({ "kind": "APIVersions", "versions": ["v1"] }))
}

fn groups(named: &[(&str, &[&str], &str)]) -> serde_json::Value {
    let groups: Vec<_> = named
        .iter()
        .map(|(name, versions, preferred)| {
            let version = |v: &str| json!({ "groupVersion": format!("{name}/{v}"), "version": v });
            let versions: Vec<_> = versions.iter().map(|v| version(v)).collect();
            json!({ "name": name, "versions": versions, "preferredVersion": version(preferred) })
        })
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn list(resources: serde_json::Value) -> Reply {
    ok(json!({ "kind": "APIResourceList", "apiVersion": "v1", "resources": resources }))
}

fn legacy(kind: &str, plural: &str) -> serde_json::Value {
    json!({
        "name": plural, "singularName": "", "namespaced": true, "kind": kind,
        "verbs": ["get", "list"], "shortNames": null, "categories": ["all"],
    })
}

/// A server that supports the legacy form only, with a broken group.
fn old_server() -> Arc<Script> {
    let deployments = json!([
        legacy("Deployment", "deployments"),
        { "name": "deployments/scale", "singularName": "", "namespaced": true, "kind": "Scale",
          "group": "autoscaling", "version": "v1", "verbs": ["get", "patch"] },
        { "name": "deployments/status", "singularName": "", "namespaced": true,
          "kind": "Deployment", "verbs": ["get"] },
        { "name": "../secrets", "namespaced": true, "kind": "Evil", "verbs": [] },
    ]);
    Script::new([
        ("/api", api_versions()),
        ("/api/v1", list(json!([legacy("Pod", "pods")]))),
        (
            "/apis",
            ok(groups(&[
                ("apps", &["v1beta1", "v1"], "v1"),
                ("metrics.k8s.io", &["v1beta1"], "v1beta1"),
                ("gone.dev", &["v1"], "v1"),
                ("last.dev", &["v2", "v3"], "v2"),
            ])),
        ),
        ("/apis/apps/v1", list(deployments)),
        ("/apis/apps/v1beta1", list(json!([legacy("Deployment", "deployments")]))),
        ("/apis/metrics.k8s.io/v1beta1", Reply::Answer(503, "service unavailable\n".to_owned())),
        ("/apis/last.dev/v2", list(json!([legacy("Thing", "things")]))),
        ("/apis/last.dev/v3", ok("<html>login</html>")),
    ])
}

#[tokio::test(start_paused = true)]
async fn the_aggregated_form_takes_one_request_per_root() {
    let mut deployments = resource("Deployment", "deployments", &["deploy"]);
    deployments["categories"] = json!(["all"]);
    deployments["subresources"] = json!([
        { "subresource": "scale", "verbs": ["get"],
          "responseKind": { "group": "autoscaling", "version": "v1", "kind": "Scale" } },
        { "subresource": "status", "verbs": ["patch"],
          "responseKind": { "group": "", "version": "", "kind": "Deployment" } },
    ]);
    let mut nodes = resource("Node", "nodes", &[]);
    nodes["scope"] = json!("Cluster");
    let script = Script::new([
        ("/api", ok(aggregated(&[group("", &[("v1", &[nodes])])]))),
        ("/apis", ok(aggregated(&[group("apps", &[("v1", &[deployments])])]))),
    ]);
    let catalog = script.discovery().catalog().await.unwrap();
    assert_eq!(script.seen.lock().len(), 2);
    let accept = script.seen.lock()[0].1["accept"].to_str().unwrap().to_owned();
    assert!(accept.starts_with("application/json;g=apidiscovery.k8s.io;v=v2;as="), "{accept}");

    let node = &catalog.version("", "v1").unwrap().resources[0];
    assert_eq!((node.info.scope, node.info.api_version().as_str()), (Scope::Cluster, "v1"));
    let deployment = catalog.version("apps", "v1").unwrap().resource("deployments").unwrap();
    assert_eq!(deployment.info.scope, Scope::Namespaced);
    assert_eq!(
        (deployment.singular.as_str(), &*deployment.short_names),
        ("deployment", &["deploy".to_owned()][..])
    );
    assert!(deployment.supports("watch") && !deployment.supports("create"));
    assert_eq!(deployment.categories, ["all"]);
    let scale = deployment.subresource("scale").unwrap();
    assert_eq!((&*scale.group, &*scale.version, &*scale.kind), ("autoscaling", "v1", "Scale"));
    let status = deployment.subresource("status").unwrap();
    assert_eq!((&*status.group, &*status.version, &*status.kind), ("apps", "v1", "Deployment"));
    assert_eq!(catalog.unread().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_the_aggregated_form_is_read_group_version_by_group_version() {
    let script = old_server();
    let catalog = script.discovery().catalog().await.unwrap();
    let apps = catalog.group("apps").unwrap();
    let versions: Vec<&str> = apps.versions.iter().map(|version| &*version.name).collect();
    assert_eq!(versions, ["v1", "v1beta1"]);
    let deployment = apps.preferred().unwrap().resource("deployments").unwrap();
    assert_eq!(deployment.singular, "deployment", "made from the kind");
    let subs: Vec<_> = deployment.subresources.iter().map(|s| (&*s.name, &*s.group)).collect();
    assert_eq!(subs, [("scale", "autoscaling"), ("status", "apps")]);
    assert_eq!(apps.preferred().unwrap().resources.len(), 1, "no path can be smuggled in");
    assert!(catalog.group("gone.dev").is_none(), "gone by the time it was read");
    // The server's choice precedes the order of versions.
    assert_eq!(catalog.find("thing").unwrap().info.version, "v2");
}

#[tokio::test(start_paused = true)]
async fn a_broken_group_version_hides_no_other_and_is_named() {
    let script = old_server();
    let discovery = script.discovery();
    let started = Instant::now();
    assert_eq!(discovery.find("deployments.apps").await.unwrap().version, "v1");
    assert_eq!(discovery.find("pods").await.unwrap().group, "");
    assert!(started.elapsed() <= Duration::from_secs(11), "{:?}", started.elapsed());
    let catalog = discovery.catalog().await.unwrap();
    let unread: Vec<String> = catalog.unread().map(ApiVersion::api_version).collect();
    assert_eq!(unread, ["metrics.k8s.io/v1beta1", "last.dev/v3"]);

    // A name may be in an unread group: the name is not reported as absent.
    let error = discovery.find("podmetrics").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server, "{error}");
    assert!(error.to_string().contains("metrics.k8s.io/v1beta1 (cannot discover"), "{error}");
    assert!(error.to_string().contains("service unavailable"), "{error}");
    let missed = NoMatch::of(&error).unwrap();
    assert_eq!(missed.groups, ["core", "apps", "metrics.k8s.io", "last.dev"]);
    assert_eq!(missed.unread.len(), 2);
    // In a group that was read, a missing name is absent.
    let error = discovery.resource_for("Widget", Some("apps"), None).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(NoMatch::of(&error).unwrap().groups, ["apps"]);
}

#[tokio::test(start_paused = true)]
async fn a_406_to_the_aggregated_form_is_answered_by_asking_for_the_legacy_one() {
    let apps = groups(&[("apps", &["v1"], "v1")]).to_string();
    let script = Script::new([
        (
            "/api",
            Reply::PlainOnly(json!({ "kind": "APIVersions", "versions": ["v1"] }).to_string()),
        ),
        ("/apis", Reply::PlainOnly(apps)),
        ("/api/v1", list(json!([legacy("Pod", "pods")]))),
        ("/apis/apps/v1", list(json!([legacy("Deployment", "deployments")]))),
    ]);
    let catalog = script.discovery().catalog().await.unwrap();
    assert_eq!(catalog.resources().count(), 2);
    assert_eq!((script.count("/api"), script.count("/apis")), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn each_root_may_speak_its_own_form() {
    let core = group("", &[("v1", &[resource("Pod", "pods", &[])])]);
    let script = Script::new([
        ("/api", ok(aggregated(&[core]))),
        ("/apis", ok(groups(&[("apps", &["v1"], "v1")]))),
        ("/apis/apps/v1", list(json!([legacy("Deployment", "deployments")]))),
    ]);
    let catalog = script.discovery().catalog().await.unwrap();
    assert!(catalog.find("pods").is_ok() && catalog.find("deployments").is_ok());

    // A server without the core group is an API server, a server with neither root is no API
    // server.
    let script = Script::new([("/apis", ok(aggregated(&[apps()])))]);
    assert!(script.discovery().find("deploy").await.is_ok());
    let error = Script::new([]).discovery().catalog().await.unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("is it an API server"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stale_group_version_is_named_and_what_it_served_before_is_known() {
    let mut metrics =
        group("metrics.k8s.io", &[("v1beta1", &[resource("PodMetrics", "pods", &[])])]);
    metrics["versions"][0]["freshness"] = json!("Stale");
    let discovery = cluster(&[metrics, apps()]).discovery();
    let catalog = discovery.catalog().await.unwrap();
    let stale: Vec<_> = catalog.unread().collect();
    assert_eq!(stale.len(), 1);
    assert_eq!(stale[0].freshness, VersionReadState::Stale);
    assert_eq!(discovery.find("PodMetrics").await.unwrap().group, "metrics.k8s.io");
    assert_eq!(discovery.find("deploy").await.unwrap().group, "apps");
    let error = discovery.find("nodemetrics").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Server);
    assert!(error.to_string().contains("metrics.k8s.io/v1beta1 (stale"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_part_that_does_not_decode_costs_that_part_only() {
    let broken = json!({ "metadata": { "name": "broken.dev" }, "versions": [
        { "version": "v1", "resources": "none" },
        { "version": "v2", "resources": [resource("Kept", "kept", &[])], "freshness": "Current" },
        { "version": 3 },
    ]});
    let odd = json!({ "metadata": { "name": "odd.dev" }, "versions": [{ "version": "v1", "resources": [
        { "resource": "pods", "responseKind": null, "scope": "Namespaced", "verbs": null,
          "subresources": [{ "subresource": "load", "responseKind": { "kind": "Load" }, "verbs": ["get"] }] },
        { "resource": "a/b", "responseKind": { "kind": "Path" } },
        { "resource": "", "responseKind": { "kind": "Empty" } },
    ]}]});
    let nothing = json!({ "metadata": { "name": "nothing.dev" }, "versions": null });
    let script = cluster(&[broken, json!({ "metadata": 7 }), odd, nothing, apps()]);
    let discovery = script.discovery();
    let catalog = discovery.catalog().await.unwrap();
    assert_eq!(discovery.find("kept").await.unwrap().version, "v2");
    assert_eq!(discovery.find("deploy").await.unwrap().version, "v1");
    let unread: Vec<String> = catalog.unread().map(ApiVersion::api_version).collect();
    assert_eq!(unread, ["broken.dev/v1"]);
    // Sub-resources without a parent take no name from a real kind.
    assert_eq!(discovery.find("pods").await.unwrap().group, "");
    let parent = catalog.version("odd.dev", "v1").unwrap();
    assert_eq!(parent.resources.len(), 1);
    assert_eq!(parent.resources[0].subresources[0].name, "load");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_discovery_document_is_said_to_be_none() {
    for body in ["<html>login</html>", "", "{}", "[]", "{\"kind\":\"PodList\"}", "{\"kind\":7}"] {
        let script = Script::new([("/api", ok(body)), ("/apis", ok(aggregated(&[])))]);
        let error = script.discovery().catalog().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Decode, "{body}: {error}");
        assert!(error.to_string().contains("not a discovery document"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_32_seconds() {
    let script = Script::new([("/api", Reply::Silence), ("/apis", Reply::Silence)]);
    let started = Instant::now();
    let error = script.discovery().catalog().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(started.elapsed() <= Duration::from_secs(32), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_server_tells_its_version() {
    let script = Script::new([(
        "/version",
        ok(json!({ "major": "1", "minor": "36+", "gitVersion": "v1.36.3-x", "extra": {} })),
    )]);
    let version = script.discovery().server_version().await.unwrap();
    assert!(version.at_least(1, 36) && version.to_string() == "v1.36.3-x");
    let script = Script::new([("/version", ok("{}"))]);
    let error = script.discovery().server_version().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode, "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_openapi_document_is_asked_for_by_its_hash() {
    let script = Script::new([
        (
            "/openapi/v3",
            ok(json!({ "paths": {
                "apis/apps/v1": { "serverRelativeURL": "/elsewhere/openapi/v3/apis/apps/v1?hash=AB12" },
                "api/v1": { "serverRelativeURL": "" },
            }})),
        ),
        ("/openapi/v3/apis/apps/v1?hash=AB12", ok(json!({ "openapi": "3.0.0", "of": "apps" }))),
        ("/openapi/v3/api/v1", ok(json!({ "openapi": "3.0.0", "of": "core" }))),
    ]);
    let discovery = script.discovery();
    assert_eq!(discovery.openapi_v3_document("apps/v1").await.unwrap()["of"], "apps");
    assert_eq!(discovery.openapi_v3_document("v1").await.unwrap()["of"], "core");
    let index = discovery.openapi_v3().await.unwrap();
    assert_eq!(index.hash("apis/apps/v1"), Some("AB12"));
    let error = discovery.openapi_v3_document("apps/v9").await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
}
