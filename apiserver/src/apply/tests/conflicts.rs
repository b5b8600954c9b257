//! Tests of conflicts and refusals, and of their texts.

use serde_json::json;

use super::World;
use crate::apply::ApplyError;

#[test]
fn one_conflict_with_an_applier_names_it_and_the_field() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v" } }));
    let error = world.refuse("m2", json!({ "data": { "k": "x" } }));
    assert_eq!((error.code(), error.reason()), (409, "Conflict"));
    assert_eq!(error.message(), "Apply failed with 1 conflict: conflict with \"m1\": .data.k");
    let ApplyError::Conflicts(conflicts) = error else { panic!("conflicts") };
    assert_eq!(conflicts[0].message, "conflict with \"m1\"");
    assert_eq!(conflicts[0].field, ".data.k");
    assert_eq!(world.get("/data/k"), "v");
}

#[test]
fn a_conflict_with_an_updater_names_its_version() {
    let mut world = World::config_map();
    world.write("corpus", json!({ "data": { "k": "v" } }));
    let error = world.refuse("m2", json!({ "data": { "k": "x" } }));
    assert_eq!(
        error.message(),
        "Apply failed with 1 conflict: conflict with \"corpus\" using v1: .data.k"
    );
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let mut world = World::config_map();
    world.apply("m2", json!({ "data": { "c": "1" } }));
    world.apply("m1", json!({ "data": { "b": "1", "a": "1" } }));
    world.write("m1", json!({ "data": { "d": "1" } }));
    let error = world.refuse("m3", json!({ "data": { "a": "x", "b": "x", "c": "x", "d": "x" } }));
    assert_eq!(
        error.message(),
        "Apply failed with 4 conflicts: conflicts with \"m1\":\n- .data.a\n- .data.b\nconflicts \
         with \"m1\" using v1:\n- .data.d\nconflicts with \"m2\":\n- .data.c"
    );
}

#[test]
fn an_equal_value_is_no_conflict() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v" } }));
    world.apply("m2", json!({ "data": { "k": "v" } }));
    assert_eq!(world.managers().len(), 2);
}

#[test]
fn force_takes_the_field_over() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v", "j": "w" } }));
    world.force("m2", json!({ "data": { "k": "x" } }));
    assert_eq!(world.get("/data/k"), "x");
    assert_eq!(world.owned("m1"), json!({ "f:data": { "f:j": {} } }));
    assert_eq!(world.owned("m2"), json!({ "f:data": { "f:k": {} } }));
}

#[test]
fn an_intent_with_managed_fields_is_refused_even_when_empty() {
    let mut world = World::config_map();
    let error = world.refuse("m", json!({ "metadata": { "managedFields": [] } }));
    assert_eq!(
        (error.code(), error.message().as_str()),
        (400, "metadata.managedFields must be nil")
    );
}

#[test]
fn an_intent_of_another_version_or_kind_is_refused() {
    let mut world = World::config_map();
    let error = world.refuse("m", json!({ "apiVersion": "v2" }));
    assert_eq!(
        (error.code(), error.message().as_str()),
        (400, "invalid object type: /v2, Kind=ConfigMap")
    );
    let error = world.refuse("m", json!({ "apiVersion": null, "kind": null }));
    assert_eq!(error.message(), "invalid object type: /, Kind=");
    let error = world.refuse("m", json!({ "kind": "Secret" }));
    assert_eq!(error.message(), "invalid object type: /v1, Kind=Secret");
}

#[test]
fn an_intent_with_a_uid_needs_an_object() {
    let mut world = World::config_map();
    let error = world.refuse("m", json!({ "metadata": { "uid": "u" } }));
    assert_eq!((error.code(), error.reason()), (409, "Conflict"));
    assert_eq!(
        error.message(),
        "uid mismatch: the provided object specified uid u, and no existing object was found"
    );
}

#[test]
fn an_intent_without_the_type_is_an_internal_error() {
    let cases = [
        (json!({ "bogus": 1 }), ".bogus: field not declared in schema"),
        (
            json!({ "data": { "k": 5 } }),
            ".data.k: expected string, got &value.valueUnstructured{Value:5}",
        ),
        (json!({ "data": "x" }), ".data: expected map, got &{x}"),
        (json!({ "immutable": [1] }), ".immutable: expected boolean, got &{[1]}"),
        (
            json!({ "metadata": { "finalizers": ["a", "a"] } }),
            ".metadata.finalizers: duplicate entries for key [=\"a\"]",
        ),
        (
            json!({ "immutable": "x", "data": { "k": 5 } }),
            "errors:\n  .data.k: expected string, got &value.valueUnstructured{Value:5}\n  \
             .immutable: expected boolean, got &{x}",
        ),
    ];
    for (body, text) in cases {
        let error = World::config_map().refuse("m", body);
        assert_eq!((error.code(), error.reason()), (500, ""));
        assert_eq!(
            error.message(),
            format!("failed to create typed patch object (ns/a; /v1, Kind=ConfigMap): {text}")
        );
    }
}

#[test]
fn a_list_item_without_any_key_is_refused() {
    let error = World::widget().refuse("m", json!({ "spec": { "items": [{ "v": 1 }] } }));
    assert!(
        error.message().ends_with(
            ".spec.items: element 0: associative list with keys has an element that omits all \
             key fields [\"name\"] (and doesn't have default values for any key fields)"
        ),
        "{error}"
    );
}

#[test]
fn kubectl_takes_over_what_it_applied_client_side() {
    let last = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
                       "data": { "a": "1", "b": "2" } });
    let mut world = World::config_map();
    world.write(
        "kubectl-client-side-apply",
        json!({ "data": { "a": "1", "b": "2" }, "metadata": { "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": last.to_string(),
        } } }),
    );
    assert!(matches!(
        world.refuse("other", json!({ "data": { "a": "9" } })),
        ApplyError::Conflicts(_)
    ));
    world.apply("kubectl", json!({ "data": { "a": "9" } }));
    assert_eq!(world.get("/data/a"), "9");
    let annotation =
        world.get("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    assert!(annotation.as_str().is_some_and(|text| text.contains("\"a\":\"9\"")), "{annotation}");
    // A field that another manager has changed since no longer counts as kubectl's own.
    world.write("other", json!({ "data": { "b": "7" } }));
    let error = world.refuse("kubectl", json!({ "data": { "a": "9", "b": "1" } }));
    assert_eq!(
        error.message(),
        "Apply failed with 1 conflict: conflict with \"other\" using v1: .data.b"
    );
}
