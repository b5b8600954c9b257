//! Tests of patches, as seen on kube-apiserver 1.36.

use serde_json::{Value, json};

use super::{PatchError, check_merge, json, merge, strategic};
use crate::typed::TypeSchema;

fn doc() -> Value {
    json!({
        "data": { "a": "1", "b": "2" },
        "metadata": { "name": "c", "finalizers": ["f/a", "f/b", "f/c"] },
    })
}

fn done(ops: Value) -> Value {
    json(&doc(), &ops).expect("the patch applies")
}

fn refused(ops: Value) -> PatchError {
    json(&doc(), &ops).expect_err("the patch is refused")
}

fn finalizers(ops: Value) -> Value {
    done(ops)["metadata"]["finalizers"].clone()
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "d", "finalizers": ["f/a", "f/b"], "labels": { "l": "1" } },
        "spec": {
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } },
            "template": { "spec": {
                "nodeSelector": { "d": "e" },
                "tolerations": [{ "key": "k" }],
                "volumes": [{ "name": "v", "emptyDir": {} }],
                "containers": [
                    { "name": "a", "image": "i:1", "args": ["x", "y"],
                      "env": [{ "name": "X", "value": "1" }, { "name": "Y", "value": "2" }],
                      "ports": [{ "containerPort": 80, "protocol": "TCP" }] },
                    { "name": "b", "image": "j:1" },
                ],
            } },
        },
    })
}

fn smp(patch: &Value) -> Result<Value, PatchError> {
    let schema = TypeSchema::builtin("apps/v1", "Deployment").expect("a built-in kind");
    strategic(&schema, &deployment(), patch)
}

fn pod_spec(patch: Value) -> Value {
    let patched = smp(&json!({ "spec": { "template": { "spec": patch } } }));
    patched.expect("the patch applies")["spec"]["template"]["spec"].clone()
}

fn pod_spec_refused(patch: Value) -> PatchError {
    smp(&json!({ "spec": { "template": { "spec": patch } } })).expect_err("the patch is refused")
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn json_patch_adds_replaces_and_removes_keys() {
    let patched = done(json!([
        { "op": "add", "path": "/data/c", "value": "3" },
        { "op": "replace", "path": "/data/a", "value": "9" },
        { "op": "remove", "path": "/data/b" },
    ]));
    assert_eq!(patched["data"], json!({ "a": "9", "c": "3" }));
}

#[test]
fn json_patch_unescapes_slashes_and_tildes() {
    let patched = done(json!([{ "op": "add", "path": "/data/x~1y~0z", "value": "1" }]));
    assert_eq!(patched["data"]["x/y~z"], "1");
}

#[test]
fn json_patch_replaces_a_missing_key_by_adding_it() {
    let patched = done(json!([{ "op": "replace", "path": "/data/new", "value": "1" }]));
    assert_eq!(patched["data"]["new"], "1");
}

#[test]
fn json_patch_copies_a_missing_key_as_null_and_adds_null_without_a_value() {
    let patched = done(json!([
        { "op": "copy", "from": "/data/none", "path": "/data/x" },
        { "op": "add", "path": "/data/y" },
    ]));
    assert_eq!((&patched["data"]["x"], &patched["data"]["y"]), (&Value::Null, &Value::Null));
    assert_eq!(patched["data"].as_object().map(serde_json::Map::len), Some(4));
}

#[test]
fn json_patch_ignores_what_stands_before_the_first_slash() {
    assert_eq!(done(json!([{ "op": "add", "path": "data/k", "value": 1 }]))["k"], 1);
}

#[test]
fn json_patch_counts_negative_indices_from_the_end() {
    let replaced =
        finalizers(json!([{ "op": "replace", "path": "/metadata/finalizers/-1", "value": "z" }]));
    assert_eq!(replaced, json!(["f/a", "f/b", "z"]));
    let removed = finalizers(json!([{ "op": "remove", "path": "/metadata/finalizers/-3" }]));
    assert_eq!(removed, json!(["f/b", "f/c"]));
}

#[test]
fn json_patch_inserts_into_lists_and_appends_with_a_dash() {
    let list = finalizers(json!([
        { "op": "add", "path": "/metadata/finalizers/1", "value": "i" },
        { "op": "add", "path": "/metadata/finalizers/-", "value": "e" },
    ]));
    assert_eq!(list, json!(["f/a", "i", "f/b", "f/c", "e"]));
}

#[test]
fn json_patch_moves_a_key() {
    let patched = done(json!([{ "op": "move", "from": "/data/a", "path": "/data/z" }]));
    assert_eq!(patched["data"], json!({ "b": "2", "z": "1" }));
}

#[test]
fn json_patch_that_fails_says_nothing_about_the_reason() {
    let wrong = [
        json!([{ "op": "test", "path": "/data/a", "value": "2" }]),
        json!([{ "op": "test", "path": "/data/none", "value": "2" }]),
        json!([{ "op": "remove", "path": "/data/none" }]),
        json!([{ "op": "move", "from": "/data/none", "path": "/data/x" }]),
        json!([{ "op": "add", "path": "/none/x", "value": 1 }]),
        json!([{ "op": "add", "path": "/data/a/x", "value": 1 }]),
        json!([{ "op": "add", "path": "/metadata/finalizers/9", "value": 1 }]),
        json!([{ "op": "remove", "path": "/metadata/finalizers/x" }]),
        json!([{ "op": "remove", "path": "/metadata/finalizers/-9" }]),
        json!([{ "op": "frob", "path": "/data/a" }]),
        json!([{ "path": "/data/a" }]),
        json!([{ "op": "add", "value": 1 }]),
        json!([{ "op": "add", "path": "", "value": {} }]),
        json!([null]),
    ];
    for ops in wrong {
        let error = refused(ops);
        assert_eq!((error.code, error.reason), (422, "Invalid"));
        assert_eq!(error.message, "the server rejected our request due to an error in our request");
    }
}

#[test]
fn json_patch_tests_a_missing_key_to_be_null() {
    assert_eq!(done(json!([{ "op": "test", "path": "/data/none", "value": null }])), doc());
}

#[test]
fn json_patch_must_be_a_list_of_operations() {
    let error = refused(json!({ "op": "add" }));
    assert_eq!((error.code, error.reason), (400, "BadRequest"));
    assert_eq!(
        error.message,
        "error decoding patch: json: cannot unmarshal object into Go value of type \
         []handlers.jsonPatchOp"
    );
    assert_eq!(refused(json!([5])).code, 400);
    assert_eq!(refused(json!([{ "op": 1, "path": "/data" }])).code, 400);
}

#[test]
fn json_patch_with_more_than_10000_operations_is_too_large() {
    let op = json!({ "op": "test", "path": "/data/none", "value": null });
    assert!(json(&doc(), &Value::Array(vec![op.clone(); 10_000])).is_ok());
    let error = refused(Value::Array(vec![op; 10_001]));
    assert_eq!((error.code, error.reason), (413, "RequestEntityTooLarge"));
    assert!(error.message.ends_with("is 10000, got 10001"), "{}", error.message);
}

#[test]
fn json_patch_may_not_blow_up_the_object_by_copying() {
    let ops: Vec<Value> = (0..30)
        .map(|i| json!({ "op": "copy", "from": "/data", "path": format!("/data/k{i}") }))
        .collect();
    assert_eq!(refused(Value::Array(ops)).code, 422);
}

#[test]
fn json_patch_may_not_nest_deeper_than_a_document_can_be_read() {
    let ops: Vec<Value> =
        (0..200).map(|i| json!({ "op": "add", "path": "/a".repeat(i + 1), "value": {} })).collect();
    assert_eq!(refused(Value::Array(ops)).code, 422);
}

#[test]
fn merge_patch_removes_nulls_and_replaces_lists() {
    let patch = json!({ "data": { "a": null, "c": "3" }, "metadata": { "finalizers": ["x"] } });
    let patched = merge(&doc(), &patch);
    assert_eq!(patched["data"], json!({ "b": "2", "c": "3" }));
    assert_eq!(patched["metadata"], json!({ "name": "c", "finalizers": ["x"] }));
}

#[test]
fn merge_patch_leaves_nulls_out_of_what_is_new() {
    let patched = merge(&doc(), &json!({ "spec": { "x": null, "y": [{ "z": null, "w": 1 }] } }));
    assert_eq!(patched["spec"], json!({ "y": [{ "w": 1 }] }));
}

#[test]
fn merge_patch_turns_a_scalar_into_a_map() {
    assert_eq!(merge(&json!({ "a": 1 }), &json!({ "a": { "b": 2 } })), json!({ "a": { "b": 2 } }));
}

#[test]
fn merge_patch_must_be_an_object_or_a_list() {
    assert!(check_merge(&json!({})).is_ok());
    let error = check_merge(&Value::Null).expect_err("null is refused");
    assert_eq!((error.code, error.message.as_str()), (400, "Invalid JSON Patch"));
}

#[test]
fn strategic_patch_merges_containers_by_name() {
    let spec = pod_spec(json!({ "containers": [{ "name": "b", "image": "j:2" }] }));
    // Items that the patch names come first; the others follow unless the server had them before.
    assert_eq!(names(&spec["containers"]), ["a", "b"]);
    assert_eq!(spec["containers"][1]["image"], "j:2");
    assert_eq!(spec["containers"][0]["image"], "i:1");
}

#[test]
fn strategic_patch_puts_new_items_first() {
    let spec = pod_spec(json!({ "containers": [{ "name": "n", "image": "k" }] }));
    assert_eq!(names(&spec["containers"]), ["n", "a", "b"]);
    let patched = smp(&json!({ "metadata": { "finalizers": ["f/c", "f/a"] } }));
    assert_eq!(
        patched.expect("the patch applies")["metadata"]["finalizers"],
        json!(["f/c", "f/a", "f/b"])
    );
}

#[test]
fn strategic_patch_deletes_an_item_by_key() {
    let spec = pod_spec(json!({ "containers": [
        { "name": "a", "env": [{ "name": "X", "$patch": "delete" }] },
        { "name": "b", "$patch": "delete" },
    ] }));
    assert_eq!(names(&spec["containers"]), ["a"]);
    assert_eq!(names(&spec["containers"][0]["env"]), ["Y"]);
}

#[test]
fn strategic_patch_replaces_a_list_on_demand() {
    let spec = pod_spec(json!({ "containers": [{ "$patch": "replace" }, { "name": "only" }] }));
    assert_eq!(spec["containers"], json!([{ "name": "only" }]));
}

#[test]
fn strategic_patch_replaces_and_deletes_maps_on_demand() {
    let replaced = pod_spec(json!({ "nodeSelector": { "$patch": "replace", "z": "1" } }));
    assert_eq!(replaced["nodeSelector"], json!({ "z": "1" }));
    let deleted = pod_spec(json!({ "nodeSelector": { "$patch": "delete" } }));
    assert_eq!(deleted["nodeSelector"], json!({}));
    let removed = pod_spec(json!({ "nodeSelector": null }));
    assert_eq!(removed.get("nodeSelector"), None);
}

#[test]
fn strategic_patch_with_a_directive_on_an_absent_map_stores_nothing() {
    let spec = pod_spec(json!({ "affinity": { "$patch": "replace", "a": "b" } }));
    assert_eq!(spec.get("affinity"), None);
}

#[test]
fn strategic_patch_replaces_lists_without_merge_key() {
    let spec = pod_spec(json!({
        "tolerations": [{ "key": "q" }],
        "containers": [{ "name": "a", "args": ["z"] }],
    }));
    assert_eq!(spec["tolerations"], json!([{ "key": "q" }]));
    assert_eq!(spec["containers"][0]["args"], json!(["z"]));
}

#[test]
fn strategic_patch_retains_only_the_keys_it_names() {
    let patched = smp(&json!({ "spec": { "strategy": {
        "$retainKeys": ["type"], "type": "Recreate",
    } } }));
    let strategy = patched.expect("the patch applies")["spec"]["strategy"].clone();
    assert_eq!(strategy, json!({ "type": "Recreate" }));
    let spec = pod_spec(json!({ "volumes": [
        { "name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": { "path": "/x" } },
    ] }));
    assert_eq!(spec["volumes"], json!([{ "name": "v", "hostPath": { "path": "/x" } }]));
}

#[test]
fn strategic_patch_refuses_a_value_that_retain_keys_does_not_name() {
    let patch = json!({ "volumes": [{ "name": "v", "$retainKeys": ["name"], "emptyDir": {} }] });
    let error = pod_spec_refused(patch);
    assert_eq!((error.code, error.message.as_str()), (400, "invalid patch format of retainKeys"));
}

#[test]
fn strategic_patch_deletes_from_lists_of_scalars() {
    let patched = smp(&json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["f/a"] } }));
    assert_eq!(patched.expect("the patch applies")["metadata"]["finalizers"], json!(["f/b"]));
}

#[test]
fn strategic_patch_orders_a_list_as_it_says() {
    let spec = pod_spec(json!({
        "$setElementOrder/containers": [{ "name": "b" }, { "name": "c" }, { "name": "a" }],
        "containers": [{ "name": "c", "image": "c" }],
    }));
    assert_eq!(names(&spec["containers"]), ["b", "c", "a"]);
    let patched = smp(&json!({ "metadata": {
        "$setElementOrder/finalizers": ["f/b", "f/z"], "finalizers": ["f/z"],
    } }));
    // f/a, which only the server has, keeps the place before f/b.
    assert_eq!(
        patched.expect("the patch applies")["metadata"]["finalizers"],
        json!(["f/a", "f/b", "f/z"])
    );
}

#[test]
fn strategic_patch_refuses_items_in_another_order_than_it_says() {
    let error = pod_spec_refused(json!({
        "$setElementOrder/containers": [{ "name": "b" }, { "name": "a" }],
        "containers": [{ "name": "a" }, { "name": "b" }],
    }));
    assert_eq!((error.code, error.reason), (500, ""));
    assert_eq!(
        error.message,
        "The order in patch list:\n[map[name:a] map[name:b]]\n doesn't match $setElementOrder \
         list:\n[map[name:b] map[name:a]]\n"
    );
}

#[test]
fn strategic_patch_refuses_items_without_their_merge_key() {
    let error = pod_spec_refused(json!({ "containers": [{ "image": "nokey" }] }));
    assert_eq!(error.code, 500);
    assert_eq!(error.message, "map: map[image:nokey] does not contain declared merge key: name");
}

#[test]
fn strategic_patch_refuses_unknown_directives() {
    let error = pod_spec_refused(json!({ "nodeSelector": { "$patch": "bogus" } }));
    assert_eq!(error.message, "unknown patch type: bogus in map: map[$patch:bogus]");
    let error = pod_spec_refused(json!({ "containers": [{ "name": "a", "$patch": "merge" }] }));
    assert_eq!(error.message, "merging lists cannot yet be specified in the patch");
}

#[test]
fn strategic_patch_replaces_a_map_whose_strategy_says_so() {
    let schema = TypeSchema::builtin("policy/v1", "PodDisruptionBudget").expect("a built-in kind");
    let doc = json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } });
    let patch = json!({ "spec": { "selector": { "matchExpressions": [] } } });
    let patched = strategic(&schema, &doc, &patch).expect("the patch applies");
    assert_eq!(patched["spec"]["selector"], json!({ "matchExpressions": [] }));
}

#[test]
fn a_strategic_patch_does_not_merge_within_an_object_of_any_kind() {
    let schema = TypeSchema::builtin("apps/v1", "ControllerRevision").unwrap();
    let held = json!({ "data": { "a": 1, "b": { "c": 1 } }, "revision": 1 });
    let patched = strategic(&schema, &held, &json!({ "data": { "a": 2, "d": { "e": 1 } } }));
    let expected = json!({ "a": 2, "b": { "c": 1 }, "d": { "e": 1 } });
    assert_eq!(patched.expect("fields of the first level are replaced")["data"], expected);
    let error = strategic(&schema, &held, &json!({ "data": { "b": { "c": 2 } } })).unwrap_err();
    let why = "unable to find api field in struct RawExtension for the json field \"b\"";
    assert_eq!((error.code, error.message.as_str()), (500, why));
}
