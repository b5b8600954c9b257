//! Tests of sets of paths and of their text.

use serde_json::{Value, json};

use crate::apply::path::PathElement;
use crate::apply::set::{PathSet, print};

fn set(value: &Value) -> PathSet {
    PathSet::from_json(value).expect("a readable set")
}

#[test]
fn a_set_reads_and_writes_as_the_same_text() {
    let text = json!({
        "f:metadata": { "f:labels": { ".": {}, "f:a": {} } },
        "f:spec": {
            "f:ports": { "k:{\"port\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:name": {} } },
            "f:tags": { "v:\"a\"": {}, "v:5": {} },
            "f:list": { "i:0": {} },
        },
    });
    assert_eq!(set(&text).to_json(), text);
}

#[test]
fn a_broken_set_is_refused() {
    for broken in [
        json!({ "bogus": {} }),
        json!({ "x:a": {} }),
        json!({ "k:{": {} }),
        json!({ "v:nope": {} }),
        json!({ "i:x": {} }),
        json!({ "f:a": 5 }),
        json!([]),
    ] {
        assert!(PathSet::from_json(&broken).is_err(), "{broken}");
    }
}

#[test]
fn a_set_nested_without_end_is_refused() {
    let mut value = json!({});
    for _ in 0..1000 {
        value = json!({ "f:a": value });
    }
    assert!(PathSet::from_json(&value).is_err());
}

#[test]
fn a_parent_and_its_child_are_different_members() {
    let parent = set(&json!({ "f:a": {} }));
    let child = set(&json!({ "f:a": { "f:b": {} } }));
    assert_eq!(parent.difference(&child), parent);
    assert_eq!(child.difference(&parent), child);
    assert!(child.recursive_difference(&parent).is_empty());
    assert!(parent.intersection(&child).is_empty());
    assert_eq!(parent.union(&child).to_json(), json!({ "f:a": { ".": {}, "f:b": {} } }));
}

#[test]
fn keys_are_the_same_whatever_their_order() {
    let one = PathElement::parse("k:{\"port\":80,\"protocol\":\"TCP\"}").expect("a step");
    let other = PathElement::parse("k:{\"protocol\":\"TCP\",\"port\":80.0}").expect("a step");
    assert_eq!(one, other);
    assert_eq!(one.to_string(), "[port=80,protocol=\"TCP\"]");
}

#[test]
fn paths_print_as_in_messages() {
    let mut printed = Vec::new();
    let text = json!({ "f:a": { "k:{\"n\":\"x\"}": { "f:b": {} }, "v:\"s\"": {}, "i:3": {} } });
    set(&text).each(&mut |path| printed.push(print(path)));
    printed.sort();
    assert_eq!(printed, [".a[3]", ".a[=\"s\"]", ".a[n=\"x\"].b"]);
}
