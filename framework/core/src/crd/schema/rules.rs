//! Keeps the CEL rules of a type whose field has rules of its own.
//!
//! In inline schemas, `extend` on a field replaces the one on its type, and with a lost rule the
//! API server accepts objects that it should not. Schemas by name keep both. So the schema is
//! generated both ways, and the rules come from the second. Absent: the rules of a flattened struct
//! beside rules of the struct around it; those are lost before any schema exists.

use serde_json::{Map, Value};

use super::merge::append;
use super::union::RULES;

/// Most nodes that describe one value: a field, its type, and the references of that.
const LAYERS: usize = 16;

/// Adds the rules of the types in `named` to the fields of `inline` that have rules of their own.
pub(super) fn restore(inline: &mut Value, named: &Value, definitions: &Map<String, Value>) {
    let Value::Object(inline) = inline else { return };
    let mut layers = Vec::new();
    look_through(named, definitions, &mut layers);
    if let Some(mine) = inline.get_mut(RULES) {
        let rules = layers.iter().filter_map(|layer| layer.get(RULES));
        rules.for_each(|rules| append(mine, rules.clone()));
    }
    let find = |key: &str| layers.iter().find_map(|layer| layer.get(key));
    for key in ["items", "additionalProperties"] {
        if let (Some(inline), Some(named)) = (inline.get_mut(key), find(key)) {
            restore(inline, named, definitions);
        }
    }
    if let Some(Value::Object(properties)) = inline.get_mut("properties") {
        for (name, inline) in properties {
            let named = layers.iter().find_map(|layer| layer.get("properties")?.get(name));
            if let Some(named) = named {
                restore(inline, named, definitions);
            }
        }
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        if let (Some(Value::Array(inline)), Some(Value::Array(named))) =
            (inline.get_mut(key), find(key))
            // Branches correspond by their positions.
            && inline.len() == named.len()
        {
            let pairs = inline.iter_mut().zip(named);
            pairs.for_each(|(inline, named)| restore(inline, named, definitions));
        }
    }
}

/// Collects all nodes that describe one value: the field, its type, and the type of an option.
fn look_through<'a>(
    named: &'a Value,
    definitions: &'a Map<String, Value>,
    layers: &mut Vec<&'a Map<String, Value>>,
) {
    let Value::Object(node) = named else { return };
    // A type that refers to itself would not end.
    if layers.len() == LAYERS {
        return;
    }
    layers.push(node);
    let name = node.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    if let Some(target) = name.and_then(|name| definitions.get(name)) {
        look_through(target, definitions, layers);
    }
    let is_null = |branch: &Value| branch.get("type").and_then(Value::as_str) == Some("null");
    if let Some([first, second]) = node.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        match (is_null(first), is_null(second)) {
            (false, true) => look_through(first, definitions, layers),
            (true, false) => look_through(second, definitions, layers),
            _ => {}
        }
    }
}
