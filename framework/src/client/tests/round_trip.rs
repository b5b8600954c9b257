//! Every verb against an API server that was not written for this test.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use serde_json::json;

use super::*;
use crate::api::{Patch, WatchEvent};
use crate::error::ErrorKind;
use crate::resource::{DynamicObject, ResourceExt, Scope};

/// A namespace of its own for one run.
async fn namespace(client: &Client) -> String {
    let object = json!({ "metadata": { "generateName": "round-trip-" } });
    let namespace: Namespace = serde_json::from_value(object).unwrap();
    client.all::<Namespace>().create(&namespace).await.unwrap().name().to_owned()
}

fn configmap(name: &str) -> ConfigMap {
    let object = json!({
        "metadata": { "name": name, "labels": { "app": "trip" } },
        "data": { "a": "1" },
    });
    serde_json::from_value(object).unwrap()
}

async fn built_in(client: &Client) {
    let shop = namespace(client).await;
    let api = client.field_manager("trip").namespace::<ConfigMap>(&shop);
    assert!(api.get_opt("home").await.unwrap().is_none());
    let before = api.list().await.unwrap().resource_version;
    let mut watch = api.watch().resource_version(&before).await.unwrap();

    let dry = api.create(&configmap("home")).dry_run().await.unwrap();
    assert_eq!(dry.name(), "home");
    let created = api.create(&configmap("home")).await.unwrap();
    let error = api.create(&configmap("home")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{error}");
    assert_eq!(error.status().unwrap().details.as_ref().unwrap().name, "home");

    let mut changed = created.clone();
    changed.data.get_or_insert_default().insert("b".into(), "2".into());
    let replaced = api.replace(&changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    assert_eq!(api.replace(&changed).await.unwrap_err().kind(), ErrorKind::Conflict);

    let merge = Patch::Merge(json!({ "data": { "a": null, "c": "3" } }));
    let merged = api.patch("home", merge).await.unwrap();
    assert_eq!(merged.data.unwrap().keys().collect::<Vec<_>>(), ["b", "c"]);
    let operations = json!([{ "op": "replace", "path": "/data/c", "value": "4" }]);
    api.patch("home", Patch::Json(operations)).await.unwrap();
    let strategic = Patch::Strategic(json!({ "metadata": { "labels": { "more": "x" } } }));
    assert_eq!(api.patch("home", strategic).await.unwrap().label("app"), Some("trip"));

    let intent = json!({ "data": { "c": "5" } });
    let error = api.apply("home", &intent).manager("other").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let applied = api.apply("home", &intent).manager("other").force().await.unwrap();
    assert_eq!(applied.data.unwrap()["c"], "5");
    assert_eq!(
        api.get("home").await.unwrap().resource_version(),
        applied.metadata.resource_version.unwrap()
    );

    for name in ["x1", "x2", "x3"] {
        api.create(&configmap(name)).await.unwrap();
    }
    let page = api.list().labels("app=trip").limit(2).await.unwrap();
    assert_eq!(page.items.len(), 2);
    let token = page.continue_token.unwrap();
    let rest = api.list().labels("app=trip").limit(9).continue_token(&token).await.unwrap();
    assert_eq!(rest.items.len(), 2);

    let error = api.delete("home").uid("another").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    api.delete("home").uid(created.uid()).propagation("Background").await.unwrap();
    assert_eq!(api.delete("home").await.unwrap_err().kind(), ErrorKind::NotFound);
    api.delete_collection().labels("app=trip").await.unwrap();
    assert!(api.list().labels("app=trip").await.unwrap().items.is_empty());

    let mut events = Vec::new();
    while events.last().is_none_or(|last| last != "deleted home") {
        match watch.next().await.expect("the watch goes on").unwrap() {
            WatchEvent::Added(object) => events.push(format!("added {}", object.name())),
            WatchEvent::Modified(object) => events.push(format!("modified {}", object.name())),
            WatchEvent::Deleted(object) => events.push(format!("deleted {}", object.name())),
            WatchEvent::Bookmark { .. } => {}
        }
    }
    assert_eq!(events[0], "added home");
    assert_eq!(events.iter().filter(|event| *event == "modified home").count(), 5);
}

fn definition() -> DynamicObject {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": { "host": { "type": "string" } } },
            "status": { "type": "object", "properties": { "ready": { "type": "boolean" } } },
        },
    });
    serde_json::from_value(json!({
        "metadata": { "name": "trips.example.dev" },
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": { "plural": "trips", "singular": "trip", "kind": "Trip" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    }))
    .unwrap()
}

fn info(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
) -> ResourceInfo {
    ResourceInfo {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: plural.into(),
        scope,
    }
}

async fn custom(client: &Client) {
    let kind = "CustomResourceDefinition";
    let plural = "customresourcedefinitions";
    let definitions =
        client.dynamic(info("apiextensions.k8s.io", kind, plural, Scope::Cluster), None);
    definitions.apply("trips.example.dev", &definition()).force().await.unwrap();
    loop {
        let now = definitions.get("trips.example.dev").await.unwrap();
        let conditions = now.rest["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True") {
            break;
        }
        client.seams().clock.sleep(std::time::Duration::from_millis(50)).await;
    }
    let shop = namespace(client).await;
    let api = client.dynamic(info("example.dev", "Trip", "trips", Scope::Namespaced), Some(&shop));
    let created = loop {
        // Established, and still unknown to the handler for a moment.
        let intent = json!({ "spec": { "host": "a" }, "status": { "ready": true } });
        match api.apply("home", &intent).await {
            Ok(created) => break created,
            Err(error) if error.is_not_found() => {
                client.seams().clock.sleep(std::time::Duration::from_millis(50)).await;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(created.api_version, "example.dev/v1");
    assert!(!created.rest.contains_key("status"), "a status is written through its subresource");
    let ready = json!({ "status": { "ready": true } });
    let with_status = api.apply("home", &ready).status().await.unwrap();
    assert_eq!(with_status.rest["status"]["ready"], true);
    assert_eq!(with_status.generation(), created.generation());
    let error = api.apply("home", &json!({ "spec": { "host": 5 } })).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Server), "{error}");
    assert_eq!(api.list().await.unwrap().items[0].kind, "Trip");
    definitions.delete("trips.example.dev").await.unwrap();
}

/// `WINDLASS_TEST_KUBECONFIG=… cargo test -p windlass --lib round_trip -- --ignored`
#[tokio::test]
#[ignore = "needs a cluster to write to, named by WINDLASS_TEST_KUBECONFIG"]
async fn every_verb_goes_to_a_real_server_and_back() {
    let path = std::env::var_os("WINDLASS_TEST_KUBECONFIG").expect("a kubeconfig");
    let client = Client::new(ClientConfig::from_file(path, None).unwrap()).unwrap();
    built_in(&client).await;
    custom(&client).await;
    let shown = format!("{:?}", client.shared.pool);
    assert!(shown.contains("shared: 1"), "one HTTP/2 connection carries it all: {shown}");
}
