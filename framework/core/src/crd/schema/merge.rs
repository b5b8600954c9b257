//! Merging of two schemas that both hold.

use serde_json::{Value, json};

use super::lower::{Lower, Node};
use super::union::{CHECKS, RULES};

/// Whether the schema allows any value, and says nothing about it.
pub(super) fn is_any(node: &Node) -> bool {
    let says = |key: &String| {
        CHECKS.contains(&key.as_str()) || matches!(key.as_str(), "type" | "properties" | "items")
    };
    node.contains_key("x-kubernetes-preserve-unknown-fields") && !node.keys().any(says)
}

/// Adds `other` to `node`. With `flattened`, `other` is an enum beside the fields of a struct, in
/// which a name on both sides is a mistake; otherwise it describes the same value.
pub(super) fn merge(lower: &mut Lower<'_>, node: &mut Node, other: Node, flattened: bool) {
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

/// Makes a bound or a pattern hold that the node has already; `false` if the node has none, and for
/// other keywords.
///
/// The bound of a type is mostly a bound of serde: a key on a field does not make a `NonZeroU16`
/// of 0.
pub(in crate::crd) fn tighten(node: &mut Node, key: &str, theirs: &Value) -> bool {
    let Some(mine) = node.get_mut(key) else { return false };
    let is_lower = match key {
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => true,
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => false,
        "pattern" if mine != theirs => {
            let other = json!([{ "pattern": mine.take() }]);
            *mine = theirs.clone();
            append(all_of(node), other);
            return true;
        }
        _ => return false,
    };
    if let (Some(old), Some(new)) = (mine.as_f64(), theirs.as_f64())
        && (if is_lower { new > old } else { new < old })
    {
        *mine = theirs.clone();
    }
    mine.is_number() && theirs.is_number()
}

/// Says the type of a node once more; `false` if it has none. Another type does not replace the
/// type of serde: both types stay, which `merge` reports with the path.
pub(in crate::crd) fn second_type(node: &mut Node, value: &Value) -> bool {
    let Some(mine) = node.get("type") else { return false };
    let (old, new) = (beside_null(mine), beside_null(value));
    let is_narrower = old == ["number"] && new == ["integer"];
    if old != new && !is_narrower {
        append(all_of(node), json!([{ "type": value }]));
    } else if is_narrower && mine.is_array() {
        node.insert("type".to_owned(), json!(["integer", "null"]));
    } else if is_narrower || value.is_array() {
        node.insert("type".to_owned(), value.clone());
    }
    true
}

/// The names of types but for null.
fn beside_null(types: &Value) -> Vec<&str> {
    let names = match types {
        Value::Array(names) => names.iter().collect(),
        name => vec![name],
    };
    names.into_iter().filter_map(Value::as_str).filter(|name| *name != "null").collect()
}

/// The conditions that hold beside those of a node.
pub(super) fn all_of(node: &mut Node) -> &mut Value {
    node.entry("allOf").or_insert_with(|| json!([]))
}

/// Adds the missing elements to a list: both lists hold.
pub(super) fn append(mine: &mut Value, theirs: Value) {
    if let (Value::Array(mine), Value::Array(theirs)) = (mine, theirs) {
        let new: Vec<_> = theirs.into_iter().filter(|it| !mine.contains(it)).collect();
        mine.extend(new);
    }
}

/// Moves two alternatives into `allOf`, the only place in which both can hold.
fn both(node: &mut Node, key: &str, value: Value) {
    let mine = node.remove(key).unwrap_or_default();
    let mut all = match node.remove("allOf") {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    all.extend([json!({ key: mine }), json!({ key: value })]);
    node.insert("allOf".to_owned(), Value::Array(all));
}

/// Adds properties; a name on both sides is merged, or a mistake if flattened.
fn properties(lower: &mut Lower<'_>, mine: &mut Node, theirs: Node, flattened: bool) {
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
