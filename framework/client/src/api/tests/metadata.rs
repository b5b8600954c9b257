//! Requests for metadata only.

use super::*;
use windlass_core::resource::PartialObject;

const ONE: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
const MANY: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
/// `Accept` of all other requests.
const WHOLE: &str = "application/json, */*";

fn partial() -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": { "name": "home", "uid": "u" },
    })
}

#[tokio::test(start_paused = true)]
async fn reads_watches_and_patches_ask_for_metadata_and_tell_the_real_kind() {
    let list = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
        "metadata": { "resourceVersion": "9" }, "items": [partial()],
    });
    let event = json!({ "type": "ADDED", "object": partial() }).to_string() + "\n";
    let echo = Echo::text([
        (200, partial().to_string()),
        (200, list.to_string()),
        (200, partial().to_string()),
        (200, event),
        (200, json!({ "kind": "Status", "status": "Success" }).to_string()),
    ]);
    let api = client(&echo).namespace::<ConfigMap>("shop").metadata();
    let is_map = |object: &PartialObject| {
        assert_eq!((object.api_version.as_str(), object.kind.as_str()), ("v1", "ConfigMap"));
    };
    is_map(&api.get("home").await.unwrap());
    is_map(&api.list().await.unwrap().items[0]);
    is_map(&api.patch("home", Patch::Merge(json!({ "metadata": {} }))).await.unwrap());
    let mut watch = api.watch().await.unwrap();
    match watch.next().await {
        Some(Ok(WatchEvent::Added(object))) => is_map(&object),
        other => panic!("{other:?}"),
    }
    assert!(api.delete("home").await.unwrap().is_gone());
    assert_eq!(echo.accepted(), [ONE, MANY, ONE, ONE, WHOLE]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_whole_objects_is_understood() {
    let echo = Echo::with([(200, stored())]);
    let object = client(&echo).namespace::<ConfigMap>("shop").get_metadata("home").await.unwrap();
    assert_eq!((object.kind.as_str(), object.metadata.uid.as_deref()), ("ConfigMap", Some("u")));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_the_form_is_asked_for_whole_objects() {
    let refusal = json!({ "kind": "Status", "reason": "NotAcceptable", "code": 406 });
    let echo = Echo::with([(406, refusal.clone()), (200, stored()), (406, refusal)]);
    let api = client(&echo).namespace::<ConfigMap>("shop");
    assert_eq!(api.get_metadata("home").await.unwrap().kind, "ConfigMap");
    assert_eq!(echo.accepted(), [ONE, WHOLE]);
    let error = api.metadata().watch().await.unwrap_err();
    assert!(error.is_not_acceptable(), "{error}");
    assert_eq!(echo.accepted()[2..], [ONE, WHOLE]);
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_neither_creates_nor_replaces() {
    let echo = Echo::with([(200, partial())]);
    let api = client(&echo).namespace::<ConfigMap>("shop").metadata();
    let object = api.get("home").await.unwrap();
    usage(api.create(&object).await, "only metadata");
    usage(api.replace(&object).await, "only metadata");
    assert_eq!(echo.seen().len(), 1);
}
