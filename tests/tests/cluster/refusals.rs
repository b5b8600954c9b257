//! Refusals of an API server, and the errors that report them.

use serde_json::json;
use windlass::ErrorKind;
use windlass::api::Patch;
use windlass::resource::ResourceInfo;

use crate::bench::Bench;
use crate::gadget::{Gadget, gadget};

#[tokio::test]
async fn an_object_that_breaks_its_schema_is_refused_naming_field_value_and_bound() {
    let bench = Bench::start().await;
    let mut large = gadget("home", "red");
    large.spec.size = 99;
    let error = bench.gadgets.create(&large).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let status = error.status().unwrap();
    assert_eq!(
        status.message,
        "Gadget.test.windlass.dev \"home\" is invalid: spec.size: Invalid value: 99: spec.size in \
         body should be less than or equal to 9"
    );
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let causes = &status.details.as_ref().unwrap().causes;
    assert_eq!(causes.len(), 1, "{causes:?}");
    assert_eq!(
        (causes[0].field.as_str(), causes[0].reason.as_str()),
        ("spec.size", "FieldValueInvalid")
    );
    let shown = error.to_string();
    assert!(shown.contains("create") && shown.contains("less than or equal to 9"), "{shown}");
}

#[tokio::test]
async fn a_wrong_type_and_a_missing_field_are_refused_by_name() {
    let bench = Bench::start().await;
    let info = ResourceInfo::of::<Gadget>();
    let api = bench.cluster.client().dynamic(info, Some(bench.cluster.namespace()));
    let cases = [
        (
            json!({ "spec": { "color": 5, "size": 1 } }),
            "spec.color: Invalid value: \"integer\": spec.color in body must be of type string: \
             \"integer\"",
        ),
        (json!({ "spec": { "size": 1 } }), "spec.color: Required value"),
        (json!({}), "spec: Required value"),
    ];
    for (mut object, expected) in cases {
        object["metadata"] = json!({ "name": "home" });
        let object = serde_json::from_value(object).unwrap();
        let error = api.create(&object).await.unwrap_err();
        let message = &error.status().unwrap().message;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{message}");
        assert_eq!(*message, format!("Gadget.test.windlass.dev \"home\" is invalid: {expected}"));
    }
}

#[tokio::test]
async fn what_a_schema_does_not_know_is_dropped() {
    let bench = Bench::start().await;
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let info = ResourceInfo::of::<Gadget>();
    let api = bench.cluster.client().dynamic(info, Some(bench.cluster.namespace()));
    let unknown = json!({ "spec": { "wheels": 4, "note": "kept" } });
    let patched = api.patch("home", Patch::Merge(unknown)).await.unwrap();
    assert_eq!(patched.rest["spec"], json!({ "color": "red", "size": 1, "note": "kept" }));
}

#[tokio::test]
async fn what_no_server_could_take_is_refused_before_it_is_sent() {
    let bench = Bench::start().await;
    let error = bench.gadgets.get("a/b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    let nameless = gadget("", "red");
    let error = bench.gadgets.create(&nameless).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

#[tokio::test]
async fn a_name_that_is_no_dns_label_is_refused_by_the_server() {
    let bench = Bench::start().await;
    let error = bench.gadgets.create(&gadget("Home_1", "red")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let status = error.status().unwrap();
    assert!(status.message.contains("metadata.name: Invalid value: \"Home_1\""), "{status:?}");
}
