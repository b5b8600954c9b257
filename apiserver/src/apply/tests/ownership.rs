//! Tests of field ownership.

use serde_json::{Value, json};

use super::World;
use crate::apply::keep_times;

#[test]
fn an_apply_creates_the_object_and_owns_what_it_names() {
    let mut world = World::config_map();
    world.apply("m", json!({ "data": { "k": "v" }, "metadata": { "labels": { "a": "b" } } }));
    assert_eq!(world.get("/data"), json!({ "k": "v" }));
    assert_eq!(
        world.entries(),
        [json!({
            "manager": "m", "operation": "Apply", "apiVersion": "v1",
            "time": "2026-01-01T00:01:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": { "f:data": { "f:k": {} }, "f:metadata": { "f:labels": { "f:a": {} } } },
        })]
    );
}

#[test]
fn an_apply_that_changes_nothing_leaves_the_object_as_it_is() {
    let mut world = World::config_map();
    world.apply("m", json!({ "data": { "k": "v" } }));
    let before = world.object().clone();
    world.apply("m", json!({ "data": { "k": "v" } }));
    assert_eq!(*world.object(), before);
}

#[test]
fn a_co_owner_of_an_unchanged_field_has_no_time() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v" } }));
    world.apply("m2", json!({ "data": { "k": "v" } }));
    // An entry without a time sorts first.
    assert_eq!(world.managers(), ["m2/Apply", "m1/Apply"]);
    assert_eq!(world.entries()[0].get("time"), None);
}

#[test]
fn a_field_no_longer_applied_is_removed() {
    let mut world = World::config_map();
    world.apply("m", json!({ "data": { "k": "v", "j": "w" } }));
    world.apply("m", json!({ "data": { "k": "v" } }));
    assert_eq!(world.get("/data"), json!({ "k": "v" }));
}

#[test]
fn a_field_no_longer_applied_stays_when_somebody_else_owns_it() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v", "j": "w" } }));
    world.apply("m2", json!({ "data": { "k": "v" } }));
    world.apply("m1", json!({ "data": { "j": "w" } }));
    assert_eq!(world.get("/data"), json!({ "k": "v", "j": "w" }));
    assert_eq!(world.owned("m1"), json!({ "f:data": { "f:j": {} } }));
}

#[test]
fn a_manager_that_applies_nothing_owns_nothing() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v" } }));
    world.apply("m2", json!({ "data": { "j": "w" } }));
    world.apply("m1", json!({}));
    assert_eq!(world.get("/data"), json!({ "j": "w" }));
    assert_eq!(world.managers(), ["m2/Apply"]);
}

#[test]
fn metadata_that_everybody_has_is_owned_by_nobody() {
    let mut world = World::config_map();
    world.write(
        "c",
        json!({ "metadata": {
        "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1,
        "resourceVersion": "5", "selfLink": "/x", "annotations": { "a": "b" },
    } }),
    );
    assert_eq!(
        world.owned("c"),
        json!({ "f:metadata": { "f:annotations": { ".": {}, "f:a": {} } } })
    );
}

#[test]
fn a_create_owns_what_it_sets_with_the_maps_around() {
    let mut world = World::config_map();
    world.write("c", json!({ "data": { "a": "1" } }));
    assert_eq!(world.owned("c"), json!({ "f:data": { ".": {}, "f:a": {} } }));
}

#[test]
fn a_create_owns_no_structures_that_are_always_there() {
    let mut world = World::builtin("apps/v1", "Deployment");
    world.write(
        "c",
        json!({ "spec": {
        "replicas": 1,
        "selector": { "matchLabels": { "a": "b" } },
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": {
            "containers": [{ "name": "main", "image": "i", "ports": [{ "containerPort": 80 }] }],
        } },
    } }),
    );
    assert_eq!(
        world.owned("c"),
        json!({ "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:template": {
                "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
                "f:spec": { "f:containers": { "k:{\"name\":\"main\"}": {
                    ".": {}, "f:image": {}, "f:name": {}, "f:resources": {},
                    "f:ports": { ".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:containerPort": {},
                    } },
                } } },
            },
        } })
    );
}

#[test]
fn an_update_takes_what_it_changes() {
    let mut world = World::config_map();
    world.write("c", json!({ "data": { "a": "1", "b": "2" } }));
    world.write("u", json!({ "data": { "b": "3", "d": "4" } }));
    assert_eq!(world.owned("c"), json!({ "f:data": { ".": {}, "f:a": {} } }));
    assert_eq!(world.owned("u"), json!({ "f:data": { "f:b": {}, "f:d": {} } }));
    assert_eq!(world.managers(), ["c/Update", "u/Update"]);
}

#[test]
fn an_update_without_change_dates_nothing() {
    let mut world = World::config_map();
    world.write("c", json!({ "data": { "a": "1" } }));
    let before = world.object().clone();
    world.write("c", json!({}));
    world.write("u", json!({ "data": { "a": "1" } }));
    assert_eq!(*world.object(), before);
}

#[test]
fn an_object_created_owning_nothing_is_not_tracked() {
    let mut world = World::config_map();
    world.write("c", json!({}));
    world.write("robot", json!({ "data": { "r": "1" } }));
    assert_eq!(world.object().pointer("/metadata/managedFields"), None);
}

#[test]
fn the_first_apply_of_an_untracked_object_starts_tracking() {
    let mut world = World::config_map();
    world.write("c", json!({}));
    world.write("robot", json!({ "data": { "r": "1" } }));
    world.apply("app", json!({ "data": { "q": "1" } }));
    assert_eq!(world.managers(), ["app/Apply", "before-first-apply/Update"]);
    assert_eq!(world.owned("before-first-apply"), json!({ "f:data": { ".": {}, "f:r": {} } }));
    assert_eq!(world.owned("app"), json!({ "f:data": { "f:q": {} } }));
}

#[test]
fn an_empty_list_of_managed_fields_resets_tracking() {
    for reset in [json!([]), json!([{}])] {
        let mut world = World::config_map();
        world.write("c", json!({ "data": { "a": "1" } }));
        world.write("u", json!({ "data": { "a": "2" }, "metadata": { "managedFields": reset } }));
        assert_eq!(world.managers(), Vec::<String>::new());
    }
}

#[test]
fn null_and_broken_managed_fields_keep_the_list() {
    let broken = json!([{ "manager": "x", "operation": "Frob", "apiVersion": "v1",
                          "fieldsType": "FieldsV1", "fieldsV1": {} }]);
    for list in [Value::Null, broken] {
        let mut world = World::config_map();
        world.write("c", json!({ "data": { "a": "1" } }));
        world.write("u", json!({ "data": { "b": "2" }, "metadata": { "managedFields": list } }));
        assert_eq!(world.managers(), ["c/Update", "u/Update"]);
    }
}

#[test]
fn managed_fields_in_an_update_replace_the_list() {
    let mut world = World::config_map();
    world.write("c", json!({ "data": { "a": "1" } }));
    let mine = json!([{ "manager": "mine", "operation": "Apply", "apiVersion": "v1",
                        "fieldsType": "FieldsV1", "fieldsV1": { "f:data": { "f:a": {} } } }]);
    world.write("u", json!({ "metadata": { "managedFields": mine } }));
    assert_eq!(world.managers(), ["mine/Apply"]);
}

#[test]
fn the_oldest_of_more_than_ten_updaters_are_folded() {
    let mut world = World::config_map();
    for i in 0..13 {
        world.write(&format!("m{i:02}"), json!({ "data": { format!("k{i}"): "1" } }));
    }
    let managers = world.managers();
    assert_eq!(managers.len(), 10);
    assert_eq!(managers[0], "ancient-changes/Update");
    assert_eq!(managers[1], "m04/Update");
    assert_eq!(
        world.owned("ancient-changes"),
        json!({ "f:data": { ".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {} } })
    );
    assert_eq!(world.entries()[0]["time"], "2026-01-01T00:04:00Z");
}

#[test]
fn appliers_are_not_folded() {
    let mut world = World::config_map();
    for i in 0..13 {
        world.apply(&format!("m{i:02}"), json!({ "data": { format!("k{i}"): "1" } }));
    }
    assert_eq!(world.managers().len(), 13);
}

#[test]
fn a_write_without_a_manager_is_that_of_unknown() {
    let mut world = World::config_map();
    world.write("", json!({ "data": { "a": "1" } }));
    assert_eq!(world.managers(), ["unknown/Update"]);
}

#[test]
fn a_null_in_a_configuration_is_owned_and_leaves_a_map_alone() {
    let mut world = World::config_map();
    world.apply("m1", json!({ "data": { "k": "v" } }));
    world.apply("m2", json!({ "data": null }));
    assert_eq!(world.get("/data"), json!({ "k": "v" }));
    assert_eq!(world.owned("m2"), json!({ "f:data": {} }));
}

#[test]
fn an_empty_map_where_the_last_fields_go_leaves_null_in_a_custom_resource() {
    let mut world = World::widget();
    world.apply("m", json!({ "spec": { "o": { "x": 1 }, "n": 1 } }));
    world.apply("m", json!({ "spec": { "o": {}, "n": 1 } }));
    assert_eq!(world.get("/spec"), json!({ "o": null, "n": 1 }));
}

#[test]
fn without_a_schema_maps_merge_and_lists_are_whole() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "any": { "a": { "b": 1 }, "l": [1, 2] } } }));
    world.apply("m2", json!({ "spec": { "any": { "a": { "c": 2 } } } }));
    assert_eq!(world.get("/spec/any"), json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] }));
    assert_eq!(
        world.owned("m1"),
        json!({ "f:spec": { "f:any": { "f:a": { ".": {}, "f:b": {} }, "f:l": {} } } })
    );
}

#[test]
fn a_part_that_became_atomic_is_owned_as_a_whole() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "items": [{ "name": "a" }], "o": { "x": 1 } } }));
    let mut schema = super::widget_schema();
    let fields = &mut schema["properties"]["spec"]["properties"];
    fields["items"]["x-kubernetes-list-type"] = "atomic".into();
    fields["o"]["x-kubernetes-map-type"] = "atomic".into();
    world.schema = std::sync::Arc::new(crate::typed::TypeSchema::from_openapi(&schema));
    world.apply("m2", json!({ "spec": { "n": 1 } }));
    assert_eq!(world.owned("m1"), json!({ "f:spec": { "f:items": {}, "f:o": {} } }));
}

#[test]
fn times_alone_do_not_change_an_object() {
    let entry = |time: &str| json!([{ "manager": "m", "time": time }]);
    let old = json!({ "metadata": { "managedFields": entry("1") }, "a": 1 });
    let new = json!({ "metadata": { "managedFields": entry("2") }, "a": 1 });
    assert_eq!(keep_times(&old, new.clone()), old);
    let changed = json!({ "metadata": { "managedFields": entry("2") }, "a": 2 });
    assert_eq!(keep_times(&old, changed.clone()), changed);
}
