//! Tests of lists that merge by key, of sets, and of atomic parts.

use serde_json::{Value, json};

use super::World;

fn names(world: &World) -> Vec<String> {
    let items = world.get("/spec/items");
    let names = items.as_array().into_iter().flatten();
    names.filter_map(|item| item["name"].as_str()).map(str::to_owned).collect()
}

fn items(names: &str) -> Value {
    let items: Vec<Value> = names.chars().map(|name| json!({ "name": name })).collect();
    json!({ "spec": { "items": items } })
}

#[test]
fn items_merge_by_key_and_each_is_owned() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "items": [{ "name": "x", "v": 1 }] } }));
    world.apply("m2", json!({ "spec": { "items": [{ "name": "y", "v": 2 }] } }));
    assert_eq!(world.get("/spec/items"), json!([{ "name": "x", "v": 1 }, { "name": "y", "v": 2 }]));
    assert_eq!(
        world.owned("m2"),
        json!({ "f:spec": { "f:items": { "k:{\"name\":\"y\"}": {
            ".": {}, "f:name": {}, "f:v": {},
        } } } })
    );
}

#[test]
fn an_item_no_longer_applied_goes_unless_co_owned() {
    let mut world = World::widget();
    world.apply("m1", items("xy"));
    world.apply("m2", items("y"));
    world.apply("m1", json!({ "spec": { "n": 1 } }));
    assert_eq!(names(&world), ["y"]);
}

#[test]
fn a_co_owned_item_loses_the_fields_of_the_one_who_leaves() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "items": [{ "name": "x", "v": 1 }] } }));
    world.apply("m2", items("x"));
    world.apply("m1", json!({ "spec": {} }));
    assert_eq!(world.get("/spec/items"), json!([{ "name": "x" }]));
}

#[test]
fn shared_items_come_in_the_applied_order_and_others_keep_their_place() {
    let mut world = World::widget();
    world.apply("m1", items("abcd"));
    world.apply("m2", items("dxb"));
    assert_eq!(names(&world), ["a", "c", "d", "x", "b"]);
}

#[test]
fn new_items_of_an_applier_come_behind() {
    let mut world = World::widget();
    world.apply("m1", items("ab"));
    world.apply("m2", items("z"));
    assert_eq!(names(&world), ["a", "b", "z"]);
}

#[test]
fn set_members_are_owned_one_by_one() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "tags": ["b", "a"] } }));
    world.apply("m2", json!({ "spec": { "tags": ["c", "a"] } }));
    assert_eq!(world.get("/spec/tags"), json!(["b", "c", "a"]));
    assert_eq!(
        world.owned("m2"),
        json!({ "f:spec": { "f:tags": { "v:\"a\"": {}, "v:\"c\"": {} } } })
    );
    world.apply("m1", json!({ "spec": {} }));
    assert_eq!(world.get("/spec/tags"), json!(["c", "a"]));
}

#[test]
fn a_list_without_a_type_is_one_value() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "plain": ["a", "b"] } }));
    assert_eq!(world.owned("m1"), json!({ "f:spec": { "f:plain": {} } }));
    let error = world.refuse("m2", json!({ "spec": { "plain": ["a"] } }));
    assert_eq!(error.message(), "Apply failed with 1 conflict: conflict with \"m1\": .spec.plain");
    world.force("m2", json!({ "spec": { "plain": ["a"] } }));
    assert_eq!(world.get("/spec/plain"), json!(["a"]));
}

#[test]
fn an_atomic_map_is_one_value() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "whole": { "a": "1" } } }));
    world.force("m2", json!({ "spec": { "whole": { "b": "2" } } }));
    assert_eq!(world.get("/spec/whole"), json!({ "b": "2" }));
    assert_eq!(world.managers(), ["m2/Apply"]);
}

#[test]
fn a_missing_key_field_has_its_default() {
    let mut world = World::builtin("v1", "Pod");
    let pod = |ports: Value| json!({ "spec": { "containers": [{ "name": "c", "ports": ports }] } });
    world.apply("m", pod(json!([{ "containerPort": 80 }])));
    assert_eq!(
        world.owned("m")["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"]["f:ports"],
        json!({ "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } })
    );
    let twice = json!([{ "containerPort": 80 }, { "containerPort": 80, "protocol": "TCP" }]);
    let error = world.refuse("m", pod(twice));
    assert!(
        error.message().ends_with(
            ".spec.containers[name=\"c\"].ports: duplicate entries for key \
             [containerPort=80,protocol=\"TCP\"]"
        ),
        "{error}"
    );
}

#[test]
fn a_conflict_in_an_item_names_its_key() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "items": [{ "name": "x", "v": 1 }] } }));
    let error = world.refuse("m2", json!({ "spec": { "items": [{ "name": "x", "v": 2 }] } }));
    assert_eq!(
        error.message(),
        "Apply failed with 1 conflict: conflict with \"m1\": .spec.items[name=\"x\"].v"
    );
}

#[test]
fn updates_track_items_and_members() {
    let mut world = World::widget();
    world
        .write("u1", json!({ "spec": { "tags": ["a", "b"], "items": [{ "name": "a", "v": 1 }] } }));
    world
        .write("u2", json!({ "spec": { "tags": ["b", "c"], "items": [{ "name": "a", "v": 2 }] } }));
    assert_eq!(
        world.owned("u1"),
        json!({ "f:spec": {
            ".": {},
            "f:items": { ".": {}, "k:{\"name\":\"a\"}": { ".": {}, "f:name": {} } },
            "f:tags": { ".": {}, "v:\"b\"": {} },
        } })
    );
    assert_eq!(
        world.owned("u2"),
        json!({ "f:spec": {
            "f:items": { "k:{\"name\":\"a\"}": { "f:v": {} } },
            "f:tags": { "v:\"c\"": {} },
        } })
    );
}

#[test]
fn duplicates_that_an_update_left_are_owned_as_one() {
    let mut world = World::widget();
    world.write("u1", json!({ "spec": { "tags": ["a"] } }));
    world.write("u2", json!({ "spec": { "tags": ["a", "a"] } }));
    assert_eq!(world.owned("u2"), json!({ "f:spec": { "f:tags": { "v:\"a\"": {} } } }));
    world.force("m", json!({ "spec": { "tags": ["a"] } }));
    assert_eq!(world.get("/spec/tags"), json!(["a"]));
}

#[test]
fn an_empty_list_is_kept_until_somebody_fills_it() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "tags": [] } }));
    assert_eq!(world.get("/spec/tags"), json!([]));
    world.apply("m1", json!({ "spec": { "tags": ["q"] } }));
    assert_eq!(world.get("/spec/tags"), json!(["q"]));
}

#[test]
fn int_or_string_takes_either() {
    let mut world = World::widget();
    world.apply("m1", json!({ "spec": { "port": "http" } }));
    world.apply("m1", json!({ "spec": { "port": 80 } }));
    assert_eq!(world.get("/spec/port"), 80);
}
