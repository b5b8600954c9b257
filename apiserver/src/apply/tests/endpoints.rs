//! Tests of subresources and of the fields that endpoints do not write.

use std::sync::Arc;

use serde_json::{Value, json};

use super::World;
use crate::apply::keep_ignored;
use crate::typed::TypeSchema;

fn deployment() -> World {
    let mut world = World::builtin("apps/v1", "Deployment");
    world.write("c", json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "replicas": 1 } }));
    world
}

fn widget_with_status() -> World {
    let mut world = World::widget();
    let schema = TypeSchema::from_openapi(&super::widget_schema()).with_status_subresource(true);
    world.schema = Arc::new(schema);
    world
}

fn owner_at(world: &World, manager: &str, subresource: Option<&str>) -> Value {
    let entries = world.entries();
    let wanted = |entry: &&Value| {
        entry["manager"] == manager
            && entry.get("subresource").and_then(Value::as_str) == subresource
    };
    entries.iter().find(wanted).cloned().unwrap_or_default()
}

#[test]
fn status_writes_have_their_own_entry() {
    let mut world = deployment();
    world.write_to(Some("status"), "c", json!({ "status": { "replicas": 1 } }));
    assert_eq!(world.managers(), ["c/Update", "c/Update"]);
    assert_eq!(
        owner_at(&world, "c", Some("status"))["fieldsV1"],
        json!({ "f:status": { "f:replicas": {} } })
    );
}

#[test]
fn a_conflict_with_a_subresource_names_it() {
    let mut world = deployment();
    world.write_to(Some("scale"), "hpa", json!({ "spec": { "replicas": 3 } }));
    let error = world.refuse("m", json!({ "spec": { "replicas": 5 } }));
    assert_eq!(
        error.message(),
        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\" using \
         apps/v1: .spec.replicas"
    );
}

#[test]
fn a_status_applied_through_the_main_endpoint_is_ignored_and_not_owned() {
    let mut world = widget_with_status();
    world.write("c", json!({ "spec": { "n": 1 } }));
    world.write_to(Some("status"), "s", json!({ "status": { "c": 1 } }));
    world.apply("m", json!({ "spec": { "n": 1 }, "status": { "c": 7 } }));
    assert_eq!(world.get("/status/c"), 1);
    assert_eq!(world.owned("m"), json!({ "f:spec": { "f:n": {} } }));
}

#[test]
fn without_a_status_subresource_status_is_a_field_like_others() {
    let mut world = World::widget();
    world.apply("m", json!({ "status": { "c": 7 } }));
    assert_eq!(world.get("/status/c"), 7);
}

#[test]
fn a_status_apply_writes_no_spec_and_no_metadata_of_a_custom_resource() {
    let mut world = widget_with_status();
    world.write("c", json!({ "spec": { "n": 1 }, "metadata": { "labels": { "a": "b" } } }));
    let body = json!({ "metadata": { "labels": { "x": "y" } }, "spec": { "n": 5 },
                       "status": { "c": 2 } });
    world.try_apply_to(Some("status"), "m", false, body).expect("the apply succeeds");
    assert_eq!(world.get("/spec/n"), 1);
    assert_eq!(world.get("/metadata/labels"), json!({ "a": "b" }));
    assert_eq!(
        owner_at(&world, "m", Some("status"))["fieldsV1"],
        json!({ "f:status": { "f:c": {} } })
    );
}

#[test]
fn before_the_first_apply_nobody_owns_what_the_endpoint_does_not_write() {
    let mut world = widget_with_status();
    world.write("c", json!({}));
    world.write("c", json!({ "spec": { "n": 1 } }));
    world.write_to(Some("status"), "c", json!({ "status": { "c": 1 } }));
    world.apply("m", json!({ "spec": { "port": 1 } }));
    assert_eq!(world.owned("before-first-apply"), json!({ "f:spec": { ".": {}, "f:n": {} } }));
}

#[test]
fn a_status_write_leaves_the_managed_fields_that_it_sends_alone() {
    let mut world = deployment();
    world.write_to(
        Some("status"),
        "s",
        json!({ "status": { "replicas": 1 }, "metadata": { "managedFields": [] } }),
    );
    assert_eq!(world.managers(), ["c/Update", "s/Update"]);
}

#[test]
fn scale_writes_take_the_replicas_and_have_no_time() {
    let mut world = deployment();
    world.write_to(Some("scale"), "hpa", json!({ "spec": { "replicas": 3 } }));
    let entry = owner_at(&world, "hpa", Some("scale"));
    assert_eq!(entry["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    assert_eq!((entry.get("time"), &entry["apiVersion"]), (None, &json!("apps/v1")));
    assert_eq!(world.owned("c").get("f:spec"), None);
}

#[test]
fn scale_writes_without_a_change_move_the_replicas_and_then_lose_their_owner() {
    let mut world = deployment();
    world.write("c", json!({ "metadata": { "labels": { "a": "b" } } }));
    let same = json!({ "spec": { "replicas": world.get("/spec/replicas") } });
    world.write_to(Some("scale"), "c", same.clone());
    assert_eq!(world.managers(), ["c/Update", "c/Update"]);
    assert_eq!(world.entries()[0]["fieldsV1"], json!({ "f:spec": { "f:replicas": {} } }));
    assert_eq!(world.entries()[0].get("time"), None);
    world.write_to(Some("scale"), "c", same.clone());
    assert_eq!(world.managers(), ["c/Update"]);
    let before = world.object().clone();
    world.write_to(Some("scale"), "c", same);
    assert_eq!(*world.object(), before);
}

#[test]
fn a_scale_apply_of_the_same_replicas_leaves_them_to_an_entry_of_their_own() {
    let mut world = deployment();
    world.write("c", json!({ "metadata": { "labels": { "a": "b" } } }));
    let same = json!({ "spec": { "replicas": world.get("/spec/replicas") } });
    world.try_apply_to(Some("scale"), "m", false, same.clone()).expect("nothing changes");
    assert_eq!(world.managers(), ["m/Apply", "c/Update", "c/Update"]);
    world.try_apply_to(Some("scale"), "m", false, same).expect("nothing changes");
    assert_eq!(world.managers(), ["m/Apply", "c/Update"]);
}

#[test]
fn a_scale_write_of_replicas_that_nobody_owns_is_not_tracked() {
    let mut world = World::builtin("apps/v1", "Deployment");
    world.write("c", json!({ "metadata": { "labels": { "a": "b" } } }));
    world.write_to(Some("scale"), "hpa", json!({ "spec": { "replicas": 3 } }));
    assert_eq!(world.managers(), ["c/Update"]);
}

#[test]
fn a_scale_apply_finds_the_replicas_owned_from_before() {
    let mut world = World::builtin("apps/v1", "Deployment");
    world.write("c", json!({ "metadata": { "labels": { "a": "b" } } }));
    world.write_to(Some("scale"), "hpa", json!({ "spec": { "replicas": 3 } }));
    let body = json!({ "spec": { "replicas": 4 } });
    let error = world.try_apply_to(Some("scale"), "m", false, body.clone());
    assert_eq!(
        error.expect_err("the apply is refused").message(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" with subresource \
         \"scale\" using autoscaling/v1: .spec.replicas"
    );
    world.try_apply_to(Some("scale"), "m", true, body).expect("the forced apply succeeds");
    assert_eq!(world.get("/spec/replicas"), 4);
    assert_eq!(world.managers(), ["m/Apply", "c/Update"]);
}

#[test]
fn an_update_gets_back_the_old_values_of_what_it_may_not_write() {
    let old =
        json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "n": 1 }, "status": { "c": 1 } });
    let new =
        json!({ "metadata": { "labels": { "x": "y" } }, "spec": { "n": 2 }, "status": { "c": 2 } });
    let schema = widget_with_status().schema;
    let mut main = new.clone();
    keep_ignored(&schema, None, &old, &mut main);
    assert_eq!((&main["status"], &main["spec"]), (&old["status"], &new["spec"]));
    let mut status = new.clone();
    keep_ignored(&schema, Some("status"), &old, &mut status);
    assert_eq!(
        status,
        json!({ "metadata": old["metadata"], "spec": old["spec"], "status": new["status"] })
    );
    let deployment = deployment().schema;
    let mut status = new.clone();
    keep_ignored(&deployment, Some("status"), &old, &mut status);
    assert_eq!(
        status,
        json!({ "metadata": old["metadata"], "spec": old["spec"], "status": new["status"] })
    );
}
