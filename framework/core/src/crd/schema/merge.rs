//! Merging of two schemas that both hold.

use serde_json::{Value, json};

use super::lower::Lower;
use super::node::{RULES, SchemaObject, append, is_any, tighten};

/// Adds `other` to `node`. With `flattened`, `other` is an enum beside the fields of a struct, in
/// which a name on both sides is a mistake; otherwise it describes the same value.
pub(super) fn merge(
    lower: &mut Lower<'_>,
    node: &mut SchemaObject,
    other: SchemaObject,
    flattened: bool,
) {
    // Any value beside a typed value: the type stays, and unknown fields are kept.
    if is_any(&other) && node.contains_key("type") {
        node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        return;
    }
    for (key, value) in other {
        if tighten(node, &key, &value) {
            continue;
        }
        match (key.as_str(), node.get_mut(&key)) {
            ("oneOf" | "anyOf", Some(_)) => both(node, &key, value),
            (_, None) => drop(node.insert(key, value)),
            ("properties", Some(Value::Object(mine))) => {
                if let Value::Object(theirs) = value {
                    properties(lower, mine, theirs, flattened);
                }
            }
            ("required" | "allOf" | RULES, Some(mine)) => append(mine, value),
            ("type", Some(mine)) if *mine != value => lower.fault(&format!(
                "it must be of type {mine} and of type {value} at once; use one of them"
            )),
            // Any other keyword of the field wins over that of its type.
            _ => {}
        }
    }
}

/// Moves two alternatives into `allOf`, the only place in which both can hold.
fn both(node: &mut SchemaObject, key: &str, value: Value) {
    let mine = node.remove(key).unwrap_or_default();
    let mut all = match node.remove("allOf") {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    all.extend([json!({ key: mine }), json!({ key: value })]);
    node.insert("allOf".to_owned(), Value::Array(all));
}

/// Adds properties; a name on both sides is merged, or a mistake if flattened.
fn properties(
    lower: &mut Lower<'_>,
    mine: &mut SchemaObject,
    theirs: SchemaObject,
    flattened: bool,
) {
    for (name, schema) in theirs {
        let Value::Object(theirs) = schema else { continue };
        match mine.get_mut(&name) {
            None => drop(mine.insert(name, Value::Object(theirs))),
            Some(Value::Object(mine)) if !flattened => {
                lower.enter(&name);
                merge(lower, mine, theirs, false);
                lower.leave();
            }
            Some(_) => {
                lower.enter(&name);
                lower.fault(
                    "the name stands in the struct and in the enum flattened into it, so serde \
                     cannot tell them apart; rename one of them",
                );
                lower.leave();
            }
        }
    }
}
