//! Keys for the items of a list, whose type a macro does not see.

#![allow(dead_code)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::{Schema as Compiled, check_crd};
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

type Pair = (String, String);

#[derive(Serialize, Deserialize, Schema)]
struct Lists {
    #[schema(each(pattern = "^[a-z]+$"))]
    args: Vec<Value>,
    #[schema(each(min = 1))]
    counts: Option<Vec<Value>>,
    #[schema(each(pattern = "^[a-z]+$"))]
    pair: Pair,
}

#[test]
fn keys_hold_for_the_items_of_any_list() {
    let found = structural_schema::<Lists>().unwrap();
    assert_eq!(found.warnings, [] as [&str; 0]);
    let definition = definition(&found.schema);
    let faults = check_crd(&definition, None);
    assert!(faults.is_empty(), "{faults:?}");
    let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let compiled = Compiled::compile(root);
    let good = json!({ "args": ["a", null], "counts": [1, "x", null], "pair": ["a", "b"] });
    for (path, bad) in
        [("", json!(0)), ("/args/0", json!("A")), ("/counts/0", json!(0)), ("/pair/1", json!("B"))]
    {
        let mut value = good.clone();
        if !path.is_empty() {
            *value.pointer_mut(path).unwrap() = bad;
        }
        let causes = compiled.validate(&json!({ "spec": value }), None).causes;
        assert_eq!(causes.is_empty(), path.is_empty(), "{path}: {causes:?}");
    }
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Serialize, Deserialize, Schema)]
struct Idle {
    #[schema(each(pattern = "^[a-z]+$"))]
    names: OneOrMany,
    #[schema(each(min = 1))]
    any: Box<Value>,
}

#[test]
fn keys_for_items_of_what_is_no_list_are_warned_of() {
    let mut found = structural_schema::<Idle>().unwrap().warnings;
    found.retain(|warning| warning.contains("`each`"));
    let text = "`each` is for lists, and the type is a value of several types, so it has no effect";
    assert_eq!(found, [format!(".any: {text}"), format!(".names: {text}")]);
}

#[derive(Serialize, Deserialize, Schema)]
struct Seat {
    #[schema(column("Row"))]
    row: i32,
    #[schema(selectable)]
    place: i32,
}

#[derive(Serialize, Deserialize, Schema)]
struct Hall {
    seats: Vec<Seat>,
    boxes: BTreeMap<String, Seat>,
    first: Seat,
}

#[test]
fn a_column_and_a_selectable_field_below_a_list_or_a_map_are_warned_of() {
    let reason =
        "has no effect below a list or a map: API servers show and select by single fields";
    let found = structural_schema::<Hall>().unwrap().warnings;
    let mut expected = Vec::new();
    for seat in ["boxes.*", "seats.[]"] {
        expected.push(format!(".{seat}.place: `selectable` {reason}"));
        expected.push(format!(".{seat}.row: `column` {reason}"));
    }
    assert_eq!(found, expected);
}
