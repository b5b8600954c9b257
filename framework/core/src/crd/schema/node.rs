//! A schema under construction: the keywords, marks and conditions that every step reads and
//! writes.

use serde_json::{Map, Value, json};

/// A schema under construction: always a JSON object.
pub(super) type SchemaObject = Map<String, Value>;

/// Mark of an object that allows no other names; see `narrow`.
pub(super) const CLOSED: &str = "$closed";

/// Mark of alternatives some of which allow no other names: beside further alternatives their
/// conditions do not know all names. Like `CLOSED`, this mark is no keyword and is removed in the
/// end.
pub(super) const PARTLY_CLOSED: &str = "$partly-closed";

/// Mark of a field that serde needs, and that is optional only by the default in the schema.
pub(super) const NEEDED_FIELD: &str = "$needed";

/// Mark of a schema that has the form of a definition already: the schema of a kind inside of
/// another kind.
pub(crate) const STRUCTURAL: &str = "x-windlass-structural";

/// Keywords that only check a value: the only keywords allowed inside of alternatives.
///
/// `required` and `properties` are added for each branch on their own.
pub(super) const CHECKS: &[&str] = &[
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
];

/// CEL rules.
///
/// They hold for a whole field: a structural schema allows none inside of alternatives.
pub(super) const RULES: &str = "x-kubernetes-validations";

/// Keyword by which an API server keeps names that a schema does not list.
pub(super) const KEEP: &str = "x-kubernetes-preserve-unknown-fields";

/// The schema of any value.
pub(super) fn any() -> SchemaObject {
    let mut node = SchemaObject::new();
    node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    node.insert("nullable".to_owned(), true.into());
    node
}

/// Whether the schema allows any value, and says nothing about it.
pub(super) fn is_any(node: &SchemaObject) -> bool {
    let says = |key: &String| {
        CHECKS.contains(&key.as_str()) || matches!(key.as_str(), "type" | "properties" | "items")
    };
    node.contains_key("x-kubernetes-preserve-unknown-fields") && !node.keys().any(says)
}

/// Whether null is allowed.
pub(super) fn is_nullable(node: &SchemaObject) -> bool {
    node.get("nullable") == Some(&Value::Bool(true))
}

/// Whether an API server takes null for an item of that schema: the server drops null from fields
/// that are not nullable and keeps it in lists, and where there is no type the server checks an
/// `enum` alone.
pub(super) fn takes_null(item: &SchemaObject) -> bool {
    let checks = ["type", "x-kubernetes-int-or-string", "enum"];
    !is_nullable(item) && !checks.iter().any(|key| item.contains_key(*key))
}

/// Removes the defaults of the fields of an object.
pub(super) fn without_defaults(node: &mut SchemaObject) {
    if let Some(Value::Object(fields)) = node.get_mut("properties") {
        for field in fields.values_mut().filter_map(Value::as_object_mut) {
            field.remove("default");
        }
    }
}

/// The schema of a field.
pub(super) fn property<'a>(node: &'a SchemaObject, name: &str) -> Option<&'a SchemaObject> {
    node.get("properties")?.get(name)?.as_object()
}

/// Takes a name out of `required`.
pub(super) fn not_required(node: &mut SchemaObject, name: &str) {
    if let Some(Value::Array(required)) = node.get_mut("required") {
        required.retain(|found| found != name);
        if required.is_empty() {
            node.remove("required");
        }
    }
}

/// Makes a bound or a pattern hold that the node has already; `false` if the node has none, and for
/// other keywords.
///
/// The bound of a type is mostly a bound of serde: a key on a field does not make a `NonZeroU16`
/// of 0.
pub(in crate::crd) fn tighten(node: &mut SchemaObject, key: &str, theirs: &Value) -> bool {
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

/// Gives a node a second type; `false` if the node has none yet. Another type does not replace the
/// type of serde: both types stay, which `merge` reports with the path.
pub(in crate::crd) fn second_type(node: &mut SchemaObject, value: &Value) -> bool {
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
pub(super) fn all_of(node: &mut SchemaObject) -> &mut Value {
    node.entry("allOf").or_insert_with(|| json!([]))
}

/// Adds the missing elements to a list: both lists hold.
pub(super) fn append(mine: &mut Value, theirs: Value) {
    if let (Value::Array(mine), Value::Array(theirs)) = (mine, theirs) {
        let new: Vec<_> = theirs.into_iter().filter(|it| !mine.contains(it)).collect();
        mine.extend(new);
    }
}

/// Kind of a schema, for the union with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SchemaKind<'a> {
    /// An object with fields or with values under free names.
    Object,
    /// A list.
    Array,
    /// An integer or a text: the only mixture that has a structural form.
    IntOrString,
    /// A text, a number, an integer or a boolean, by the name of the type.
    Scalar(&'a str),
    /// Values of several types, each with conditions.
    Mixture,
    /// Any value: the schema has no type.
    Any,
}

impl<'a> SchemaKind<'a> {
    /// Reads the kind of values that a lowered schema allows.
    pub(super) fn of(node: &'a SchemaObject) -> Self {
        match node.get("type").and_then(Value::as_str) {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some(name) => Self::Scalar(name),
            None if node.contains_key("x-kubernetes-int-or-string") => Self::IntOrString,
            None if !is_any(node) => Self::Mixture,
            None => Self::Any,
        }
    }
}
