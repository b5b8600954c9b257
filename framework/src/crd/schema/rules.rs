//! The rules of a type whose field has rules of its own.
//!
//! Where types stand inline, what `extend` says on a field takes the place of what it says on the type, and a
//! rule that is lost is an object that the API server accepts and should not. By name both are there. So the
//! schema is made both ways, and rules come from the second. Absent: the rules of a flattened struct beside
//! rules of the struct around it; those are lost before any schema is seen.

use serde_json::{Map, Value};

use super::merge::append;
use super::union::RULES;

/// A field, its type, and what that may refer to.
const LAYERS: usize = 16;

/// Adds to `inline`, where a field has rules, those of the types that `named` refers to there.
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
            && inline.len() == named.len()
        {
            let pairs = inline.iter_mut().zip(named);
            pairs.for_each(|(inline, named)| restore(inline, named, definitions));
        }
    }
}

/// All that is said of one value: on the field, on its type, and of one that may be null.
fn look_through<'a>(
    named: &'a Value,
    definitions: &'a Map<String, Value>,
    layers: &mut Vec<&'a Map<String, Value>>,
) {
    let Value::Object(node) = named else { return };
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
