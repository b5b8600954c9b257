//! The shape of alternatives: a schema that allows every value of each.
//!
//! The types of fields and items stand here, as wide as needed; the conditions of each alternative
//! are added by `narrow`.

use serde_json::{Value, json};

use super::super::lower::Lower;
use super::super::node::{
    CHECKS, CLOSED, KEEP, SchemaKind, SchemaObject, any, is_any, is_nullable, property,
    without_defaults,
};

impl Lower<'_> {
    /// The narrowest schema without alternatives that allows every value that any of `nodes`
    /// allows.
    ///
    /// Equal branches stay as they are. Integer and number become number, integer and text become
    /// int-or-string; other mixtures keep everything, and describe fields and items if they can.
    pub(super) fn widest(&mut self, nodes: &[SchemaObject]) -> SchemaObject {
        let Some(first) = nodes.first() else { return any() };
        if nodes.iter().all(|node| node == first) {
            return first.clone();
        }
        let mut kinds: Vec<SchemaKind> = Vec::new();
        for kind in nodes.iter().map(SchemaKind::of) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        // Sorted, so that each combination has a single order below.
        kinds.sort_unstable();
        let mut wide = match kinds.as_slice() {
            [SchemaKind::Object] => self.fields(nodes),
            [SchemaKind::Array] => self.arrays(nodes),
            [SchemaKind::Scalar(name)] => scalars(name, nodes),
            [SchemaKind::Scalar("integer"), SchemaKind::Scalar("number")] => {
                scalars("number", nodes)
            }
            [SchemaKind::Scalar("integer"), SchemaKind::Scalar("string")]
            | [SchemaKind::IntOrString]
            | [SchemaKind::IntOrString, SchemaKind::Scalar("integer" | "string")]
            | [
                SchemaKind::IntOrString,
                SchemaKind::Scalar("integer"),
                SchemaKind::Scalar("string"),
            ] => {
                let mut node = SchemaObject::new();
                node.insert("x-kubernetes-int-or-string".to_owned(), true.into());
                node
            }
            kinds if kinds.contains(&SchemaKind::Any) => any(),
            _ => self.mixture(nodes),
        };
        if nodes.iter().any(is_nullable) {
            wide.insert("nullable".to_owned(), true.into());
        }
        wide
    }

    /// Values of several types: everything is kept, and the fields of objects and the items of
    /// lists are described, because conditions on them may name only fields and items that are
    /// described outside of the conditions.
    fn mixture(&mut self, nodes: &[SchemaObject]) -> SchemaObject {
        let of = |kind: SchemaKind, key: &str, name: &str| {
            let parts = nodes.iter().filter_map(|node| match SchemaKind::of(node) {
                found if found == kind => Some(node.clone()),
                // The fields or the items of a mixture that is a part of this mixture.
                SchemaKind::Mixture => {
                    let part = json!({ "type": name, key: node.get(key)? });
                    part.as_object().cloned()
                }
                _ => None,
            });
            parts.collect::<Vec<SchemaObject>>()
        };
        let mut wide = any();
        wide.remove("nullable");
        let objects = self.widest(&of(SchemaKind::Object, "properties", "object"));
        if objects.get(KEEP).is_none()
            && let Some(properties) = objects.get("properties")
        {
            wide.insert("properties".to_owned(), properties.clone());
            without_defaults(&mut wide);
        }
        if let Some(items) = self.widest(&of(SchemaKind::Array, "items", "array")).get("items") {
            wide.insert("items".to_owned(), items.clone());
        }
        wide
    }

    /// The fields of several objects in a single object.
    ///
    /// A field is required when each branch requires it, and has the union of the branches'
    /// schemas. The field has a default only if each branch has the field: the API server would
    /// write the default into the others.
    fn fields(&mut self, nodes: &[SchemaObject]) -> SchemaObject {
        let mut union = SchemaObject::new();
        union.insert("type".to_owned(), "object".into());
        let mut properties = SchemaObject::new();
        for name in names(nodes) {
            let schemas: Vec<SchemaObject> =
                nodes.iter().filter_map(|node| value_of(node, &name)).collect();
            self.enter(&name);
            let mut field = self.widest(&schemas);
            if schemas.len() > 1 {
                self.carry(&schemas, None, &mut field);
            }
            self.leave();
            if nodes.iter().any(|node| property(node, &name).is_none()) {
                field.remove("default");
            }
            properties.insert(name, Value::Object(field));
        }
        self.rest(nodes, !properties.is_empty(), &mut union);
        if !properties.is_empty() {
            union.insert("properties".to_owned(), Value::Object(properties));
        }
        let required = required_by_all(nodes);
        if !required.is_empty() {
            union.insert("required".to_owned(), required.into());
        }
        if nodes.iter().all(|node| node.contains_key(CLOSED)) {
            union.insert(CLOSED.to_owned(), true.into());
        }
        union
    }

    /// Adds names that no branch lists, if any branch allows them.
    ///
    /// `named` says that the union lists names. Structural schemas forbid `properties` beside
    /// `additionalProperties`, so such a union keeps other names unchecked.
    fn rest(&mut self, nodes: &[SchemaObject], named: bool, union: &mut SchemaObject) {
        let values: Vec<SchemaObject> = nodes
            .iter()
            .filter_map(|node| node.get("additionalProperties")?.as_object().cloned())
            .collect();
        let kept = nodes.iter().any(|node| node.contains_key(KEEP));
        // Beside listed names, others can be kept but not described.
        if kept || (named && !values.is_empty()) {
            union.insert(KEEP.to_owned(), true.into());
        } else if !values.is_empty() {
            self.enter("*");
            let value = self.widest(&values);
            self.leave();
            let (key, value) = if is_any(&value) {
                (KEEP, true.into())
            } else {
                ("additionalProperties", Value::Object(value))
            };
            union.insert(key.to_owned(), value);
        }
    }

    /// The union of lists: a single schema for the items of all.
    ///
    /// A branch without `items` makes items of any value.
    fn arrays(&mut self, nodes: &[SchemaObject]) -> SchemaObject {
        let items: Vec<SchemaObject> = nodes
            .iter()
            .map(|node| node.get("items").and_then(Value::as_object).cloned().unwrap_or_else(any))
            .collect();
        self.enter("[]");
        // The step `[]` is on the path meanwhile, so that a warning names the items.
        let mut item = self.widest(&items);
        self.carry(&items, None, &mut item);
        self.leave();
        json_object(json!({ "type": "array", "items": item }))
    }
}

/// The fields of a literal object.
fn json_object(value: Value) -> SchemaObject {
    match value {
        Value::Object(node) => node,
        _ => SchemaObject::new(),
    }
}

/// The names of fields of all objects, in the order in which they stand.
fn names(nodes: &[SchemaObject]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for node in nodes {
        let Some(Value::Object(properties)) = node.get("properties") else { continue };
        for name in properties.keys() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

/// The schema of the values that an object may have under a name: as a field, or as a free name.
fn value_of(node: &SchemaObject, name: &str) -> Option<SchemaObject> {
    let free = || node.get("additionalProperties").and_then(Value::as_object).cloned();
    let kept = || node.contains_key(KEEP).then(any);
    property(node, name).cloned().or_else(free).or_else(kept)
}

/// The union of scalars of the same type: all values if each branch lists values, and their
/// descriptions.
///
/// Other checks and the description stay if they are the same everywhere: a bound of a branch does
/// not hold for the values of another.
fn scalars(name: &str, nodes: &[SchemaObject]) -> SchemaObject {
    let mut union = SchemaObject::new();
    union.insert("type".to_owned(), name.into());
    let lists: Option<Vec<&Vec<Value>>> =
        nodes.iter().map(|node| node.get("enum").and_then(Value::as_array)).collect();
    if let Some(lists) = lists {
        let mut values: Vec<Value> = Vec::new();
        for value in lists.into_iter().flatten() {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        union.insert("enum".to_owned(), Value::Array(values));
    }
    let first = nodes.first().into_iter().flatten();
    for (key, value) in first.filter(|(key, _)| is_common(key)) {
        if nodes.iter().all(|node| node.get(key) == Some(value)) {
            union.insert(key.clone(), value.clone());
        }
    }
    // The doc comments of variants would be lost with their branches.
    let notes: Vec<String> = nodes.iter().filter_map(variant_note).collect();
    if !notes.is_empty() && !union.contains_key("description") {
        union.insert("description".to_owned(), notes.join("\n").into());
    }
    union
}

/// The note of a documented variant: "- `Value`: the doc comment".
///
/// `None` for a branch without a description or without listed values.
fn variant_note(node: &SchemaObject) -> Option<String> {
    let description = node.get("description")?.as_str()?;
    let values = node.get("enum")?.as_array()?;
    let names: Vec<String> =
        values.iter().map(|value| format!("`{}`", value.as_str().unwrap_or_default())).collect();
    Some(format!("- {}: {description}", names.join(", ")))
}

/// Whether a keyword of a scalar may stand in the union if all branches have the keyword.
fn is_common(key: &str) -> bool {
    key != "enum" && (CHECKS.contains(&key) || key == "description")
}

/// The fields that every branch requires.
///
/// In the order of the first branch.
fn required_by_all(nodes: &[SchemaObject]) -> Vec<Value> {
    let list = |node: &SchemaObject| match node.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let first = nodes.first().map(list).unwrap_or_default();
    first.into_iter().filter(|name| nodes.iter().all(|node| list(node).contains(name))).collect()
}
