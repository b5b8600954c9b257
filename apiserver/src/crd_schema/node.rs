//! Compiled form of a schema.
//!
//! Types, patterns and children are resolved once, at compilation, so that every request walks a
//! tree of plain data. Nodes below `allOf`, `anyOf`, `oneOf` and `not` have the same form but only
//! validate.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::pattern::{Budget, SchemaPattern};

/// Values allowed under keys that `properties` does not name.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    /// Any value (`true`) or none (`false`).
    Any(bool),
    /// Values of a schema.
    Schema(Box<SchemaNode>),
}

/// Value of `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListType {
    /// The list is replaced as a whole.
    Atomic,
    /// Values are unique.
    Set,
    /// Keys are unique.
    Map,
}

/// A node of a compiled schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemaNode {
    /// Allowed JSON types; empty for any.
    pub(crate) types: Vec<String>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) preserve: bool,
    /// `x-kubernetes-embedded-resource`.
    pub(crate) embedded: bool,
    /// Whether the schema or a schema below is that of an embedded resource.
    pub(crate) has_embedded: bool,
    pub(crate) properties: BTreeMap<String, SchemaNode>,
    /// `additionalProperties`.
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Box<SchemaNode>>,
    /// Default of an absent field; never null.
    pub(crate) default: Option<Value>,
    /// Format that is checked; empty for none.
    pub(crate) format: String,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) pattern: Option<SchemaPattern>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) required: Vec<String>,
    /// `enum`; empty for any value.
    pub(crate) enumeration: Vec<Value>,
    pub(crate) all_of: Vec<SchemaNode>,
    pub(crate) any_of: Vec<SchemaNode>,
    pub(crate) one_of: Vec<SchemaNode>,
    pub(crate) not: Option<Box<SchemaNode>>,
    pub(crate) list_type: Option<ListType>,
    /// Key fields of a list of type `map`.
    pub(crate) list_map_keys: Vec<String>,
    /// Whether a map is replaced as a whole.
    pub(crate) map_atomic: bool,
}

impl SchemaNode {
    /// Compiles a schema object. Malformed parts are left out, since [`check_crd`] refuses them.
    ///
    /// [`check_crd`]: super::check_crd
    pub(crate) fn compile(schema: &Value, budget: &Budget) -> SchemaNode {
        let Some(map) = schema.as_object() else { return SchemaNode::default() };
        let mut node = SchemaNode {
            nullable: flag(map, "nullable"),
            int_or_string: flag(map, "x-kubernetes-int-or-string"),
            preserve: flag(map, "x-kubernetes-preserve-unknown-fields"),
            embedded: flag(map, "x-kubernetes-embedded-resource"),
            default: map.get("default").filter(|v| !v.is_null()).cloned(),
            maximum: float(map, "maximum"),
            exclusive_maximum: flag(map, "exclusiveMaximum"),
            minimum: float(map, "minimum"),
            exclusive_minimum: flag(map, "exclusiveMinimum"),
            multiple_of: float(map, "multipleOf"),
            max_length: count(map, "maxLength"),
            min_length: count(map, "minLength"),
            pattern: text(map, "pattern")
                .filter(|p| !p.is_empty())
                .map(|p| SchemaPattern::compile(p, budget)),
            max_items: count(map, "maxItems"),
            min_items: count(map, "minItems"),
            max_properties: count(map, "maxProperties"),
            min_properties: count(map, "minProperties"),
            required: texts(map, "required"),
            enumeration: list(map, "enum").to_vec(),
            all_of: nodes(map, "allOf", budget),
            any_of: nodes(map, "anyOf", budget),
            one_of: nodes(map, "oneOf", budget),
            not: map.get("not").map(|n| Box::new(SchemaNode::compile(n, budget))),
            list_type: list_type(text(map, "x-kubernetes-list-type")),
            list_map_keys: texts(map, "x-kubernetes-list-map-keys"),
            map_atomic: text(map, "x-kubernetes-map-type") == Some("atomic"),
            ..SchemaNode::default()
        };
        node.compile_types(map);
        node.compile_children(map, budget);
        let below = node.properties.values().chain(node.items.as_deref());
        let other = matches!(&node.additional, Some(Additional::Schema(n)) if n.has_embedded);
        node.has_embedded = node.embedded || other || below.into_iter().any(|n| n.has_embedded);
        node
    }

    /// Compiles type and format; a format that does not fit the type is dropped.
    fn compile_types(&mut self, map: &Map<String, Value>) {
        if self.int_or_string {
            // Takes the place of `type`, which such a schema need not have.
            self.types = vec!["integer".to_owned(), "string".to_owned()];
        } else if let Some(kind) = text(map, "type").filter(|t| !t.is_empty()) {
            self.types = vec![kind.to_owned()];
        }
        let format = text(map, "format").unwrap_or_default();
        let known = match self.types.as_slice() {
            [one] if one == "integer" => matches!(format, "int32" | "int64"),
            [one] if one == "number" => matches!(format, "float" | "double"),
            [one] if one == "string" => super::formats::known(format),
            // Objects, lists and booleans have no formats.
            [one] if !one.is_empty() => false,
            _ => super::formats::known(format),
        };
        if known {
            self.format = format.to_owned();
        }
    }

    /// Compiles the schemas of fields and items.
    fn compile_children(&mut self, map: &Map<String, Value>, budget: &Budget) {
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            self.properties = properties
                .iter()
                .map(|(k, v)| (k.clone(), SchemaNode::compile(v, budget)))
                .collect();
        }
        self.additional = match map.get("additionalProperties") {
            Some(Value::Bool(allow)) => Some(Additional::Any(*allow)),
            Some(schema @ Value::Object(_)) => {
                Some(Additional::Schema(Box::new(SchemaNode::compile(schema, budget))))
            }
            _ => None,
        };
        self.items = map
            .get("items")
            .filter(|v| v.is_object())
            .map(|v| Box::new(SchemaNode::compile(v, budget)));
    }

    /// Returns the schema of values under `key`, if present.
    pub(crate) fn field(&self, key: &str) -> Option<&SchemaNode> {
        self.properties.get(key).or(match &self.additional {
            Some(Additional::Schema(node)) => Some(node),
            _ => None,
        })
    }
}

/// Parses `x-kubernetes-list-type`.
fn list_type(text: Option<&str>) -> Option<ListType> {
    match text {
        Some("set") => Some(ListType::Set),
        Some("map") => Some(ListType::Map),
        Some("atomic") => Some(ListType::Atomic),
        _ => None,
    }
}

/// Compiles a list of schemas.
fn nodes(map: &Map<String, Value>, key: &str, budget: &Budget) -> Vec<SchemaNode> {
    list(map, key).iter().map(|schema| SchemaNode::compile(schema, budget)).collect()
}

/// Returns a boolean; false when absent.
pub(crate) fn flag(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Returns a text.
pub(crate) fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

/// Returns a list; empty when absent.
pub(crate) fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the texts of a list.
pub(crate) fn texts(map: &Map<String, Value>, key: &str) -> Vec<String> {
    list(map, key).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns a number.
fn float(map: &Map<String, Value>, key: &str) -> Option<f64> {
    map.get(key).and_then(Value::as_f64)
}

/// Returns a number that is not negative.
fn count(map: &Map<String, Value>, key: &str) -> Option<u64> {
    map.get(key).and_then(Value::as_u64)
}
