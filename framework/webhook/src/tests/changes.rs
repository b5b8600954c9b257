//! Changes of typed objects as patches.

use base64::Engine as _;
use k8s_openapi::api::apps::v1::Deployment;
use proptest::prelude::*;

use super::*;
use crate::change::carry;
use crate::patch::diff;

/// Returns the operations in a response.
pub(super) fn patch(response: &Value) -> Value {
    let text = response["patch"].as_str().unwrap_or_default();
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Returns `raw` after a patch.
fn patched(raw: &Value, operations: &impl serde::Serialize) -> Value {
    let operations: json_patch::Patch =
        serde_json::from_value(serde_json::to_value(operations).unwrap()).unwrap();
    let mut value = raw.clone();
    json_patch::patch(&mut value, &operations).unwrap();
    value
}

#[tokio::test]
async fn a_change_is_sent_as_the_changed_field_and_no_change_as_nothing() {
    let answer = create(MUTATE, json!({ "a": "b" })).await;
    let wanted = json!([{ "op": "add", "path": "/data/host", "value": "home.example" }]);
    assert_eq!((&answer["patchType"], patch(&answer)), (&json!("JSONPatch"), wanted));
    let answer = create(MUTATE, json!({ "host": "b" })).await;
    assert_eq!(answer, json!({ "uid": "7a", "allowed": true }));
}

#[tokio::test]
async fn a_patch_names_no_field_that_the_type_does_not_know() {
    let mut sent = map(json!({}));
    sent["future"] = json!({ "a": 1 });
    let (_, answer) = ask(MUTATE, &review("CREATE", sent, Value::Null)).await;
    let wanted = json!([{ "op": "add", "path": "/data/host", "value": "home.example" }]);
    assert_eq!(patch(&answer["response"]), wanted);
}

/// "Never" of an API server is later than any time that a typed field can hold.
#[tokio::test]
async fn a_time_at_the_end_of_the_year_9999_is_read_and_left_as_it_is() {
    let mut sent = map(json!({}));
    sent["metadata"]["creationTimestamp"] = json!("9999-12-31T23:59:59Z");
    for operation in ["CREATE", "UPDATE"] {
        let asked = review(operation, sent.clone(), sent.clone());
        let (_, answer) = ask(VALIDATE, &asked).await;
        assert_eq!(answer["response"], json!({ "uid": "7a", "allowed": true }));
        let (_, answer) = ask(MUTATE, &asked).await;
        let wanted = json!([{ "op": "add", "path": "/data/host", "value": "home.example" }]);
        assert_eq!(patch(&answer["response"]), wanted);
    }
}

#[tokio::test]
async fn a_response_that_denies_sends_no_patch() {
    let answer = create(MUTATE, json!({ "refuse": "" })).await;
    assert_eq!((&answer["allowed"], &answer["patch"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn a_deletion_has_nothing_to_change() {
    let (_, answer) = ask(MUTATE, &review("DELETE", Value::Null, map(json!({})))).await;
    assert_eq!(answer["response"], json!({ "uid": "7a", "allowed": true }));
}

/// Changes a Deployment as its type, and returns the JSON that the API server has afterwards.
fn changed(raw: &Value, change: impl FnOnce(&mut Deployment)) -> Value {
    let mut web: Deployment = serde_json::from_value(raw.clone()).unwrap();
    let before = serde_json::to_value(&web).unwrap();
    change(&mut web);
    let after = serde_json::to_value(&web).unwrap();
    patched(raw, &diff(raw, &carry(raw, &before, &after)))
}

fn web() -> Value {
    let container = |name: &str| json!({ "name": name, "image": "a", "future": name });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "new": 1 },
        "spec": {
            "selector": {}, "future": { "a": null },
            "template": { "spec": { "containers": [container("x"), container("y")] } },
        },
    })
}

fn containers(web: &mut Deployment) -> &mut Vec<k8s_openapi::api::core::v1::Container> {
    let template = &mut web.spec.as_mut().unwrap().template;
    &mut template.spec.as_mut().unwrap().containers
}

#[test]
fn fields_that_the_type_does_not_know_survive_beside_a_change() {
    let seen = changed(&web(), |web| containers(web)[1].image = Some("b".to_owned()));
    let mut wanted = web();
    wanted["spec"]["template"]["spec"]["containers"][1]["image"] = json!("b");
    assert_eq!(seen, wanted);
}

#[test]
fn an_element_keeps_its_unknown_fields_when_others_come_and_go() {
    let seen = changed(&web(), |web| {
        let list = containers(web);
        list.remove(0);
        list[0].image = Some("b".to_owned());
        list.insert(0, Default::default());
    });
    let seen = &seen["spec"]["template"]["spec"]["containers"];
    assert_eq!(seen[0], json!({ "name": "" }));
    assert_eq!(seen[1], json!({ "name": "y", "image": "b", "future": "y" }));
}

#[test]
fn a_field_in_a_parent_that_was_not_sent_is_added_with_the_parent() {
    let raw = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {} });
    let seen = changed(&raw, |web| web.spec = Some(Default::default()));
    assert!(seen["spec"].is_object());
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3_i64).prop_map(Value::from),
        "[a~/]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map("[a~/]{0,2}|name", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_patch_makes_one_value_of_the_other(from in json(), to in json()) {
        prop_assert_eq!(patched(&from, &diff(&from, &to)), to);
    }

    #[test]
    fn a_type_that_knows_all_fields_changes_to_exactly_its_new_state(a in json(), b in json()) {
        prop_assert_eq!(carry(&a, &a, &b), b);
    }

    #[test]
    fn without_a_change_of_the_type_nothing_is_sent(raw in json(), typed in json()) {
        prop_assert_eq!(diff(&raw, &carry(&raw, &typed, &typed)), vec![]);
    }
}

/// A user decides how long a list is, and a handler may change each element.
#[test]
fn the_work_of_a_change_grows_with_the_list_and_not_with_its_square() {
    let list = |value: &str| {
        let items = (0..100_000).map(|at| json!({ "name": format!("n{at}"), "value": value }));
        json!({ "items": items.collect::<Vec<_>>() })
    };
    let (done, carried) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (before, mut after) = (list("a"), list("b"));
        // One less: no element is found by its place.
        after["items"].as_array_mut().unwrap().remove(50_000);
        let carried = carry(&before, &before, &after);
        let _ = done.send((carried == after, diff(&before, &carried).len()));
    });
    let found = carried.recv_timeout(std::time::Duration::from_secs(60)).expect("it takes hours");
    assert_eq!(found, (true, 1));
}

/// An operation takes many times the bytes of a number.
#[test]
fn a_list_or_map_of_many_changes_is_sent_as_a_whole() {
    let list = |from: u32| json!({ "a": { "b": (from..from + 5000).collect::<Vec<_>>(), "c": 1 } });
    let names = |value: u32| (0..5000).map(move |at| (format!("n{at}"), json!(value)));
    let map = |value: u32| json!({ "a": { "b": names(value).collect::<Value>(), "c": 1 } });
    let shorter = json!({ "a": { "b": [5000], "c": 1 } });
    let cases = [(list(0), list(9000)), (map(0), map(1)), (list(0), shorter)];
    for (from, to) in cases {
        let operations = diff(&from, &to);
        assert_eq!(json!(operations)[0]["path"], "/a/b");
        assert_eq!((operations.len(), patched(&from, &operations)), (1, to));
    }
    let (few, other) =
        (json!((0..900).collect::<Vec<_>>()), json!((1000..1900).collect::<Vec<_>>()));
    assert_eq!(diff(&json!({ "a": few }), &json!({ "a": other })).len(), 900);
    // An API server may not know an operation on the object itself.
    let (from, to) = (map(0)["a"]["b"].take(), map(1)["a"]["b"].take());
    let operations = diff(&from, &to);
    assert_eq!((operations.len(), patched(&from, &operations)), (5000, to));
}
