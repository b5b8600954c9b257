//! The printed module so far: its types with their names, and the differences from the schemas.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::keys::ValueClass;
use super::names::{FieldName, UniqueIdentifiers, pascal, singular};

/// A schema: always a JSON object.
pub(super) type SchemaNode = Map<String, Value>;

/// Rust type of a schema.
#[derive(Clone, Debug)]
pub(super) struct RustShape {
    /// The type.
    pub(super) rust: String,
    /// Form of the type's values.
    pub(super) class: ValueClass,
    /// Keywords that the type implies; `None`: the type allows any value, and has the keywords that
    /// an attribute adds.
    pub(super) covered: Option<SchemaNode>,
    /// Keywords of the items that the key `each` adds.
    pub(super) each: SchemaNode,
    /// The default of the type in JSON; `None` if it has none.
    pub(super) default: Option<Value>,
}

impl RustShape {
    /// A type whose schema has these keywords.
    pub(super) fn of(rust: &str, class: ValueClass, covered: Value) -> Self {
        let covered = covered.as_object().cloned();
        Self { rust: rust.to_owned(), class, covered, each: SchemaNode::new(), default: None }
    }

    /// Adds the value that the type's `Default` is in JSON.
    pub(super) fn or_default(self, default: impl Into<Value>) -> Self {
        Self { default: Some(default.into()), ..self }
    }

    /// Returns the keywords of `node` that the type does not imply.
    pub(super) fn missing(&self, node: &SchemaNode) -> SchemaNode {
        let has = |key: &String, value: &Value| {
            self.covered.as_ref().is_some_and(|covered| covered.get(key) == Some(value))
        };
        let is_elsewhere = |key: &str| matches!(key, "description" | "default" | "nullable");
        node.iter()
            .filter(|(key, value)| !is_elsewhere(key) && !has(key, value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

/// A printed type.
#[derive(Clone, Debug)]
pub(super) struct PrintedType {
    pub(super) name: String,
    /// The default of the type in JSON.
    pub(super) default: Option<Value>,
    /// Variants of an enum by their texts.
    pub(super) variants: BTreeMap<String, String>,
    /// Fields of a struct.
    pub(super) fields: Vec<FieldName>,
    /// Position in the source.
    pub(super) at: usize,
}

impl PrintedType {
    pub(super) fn new(name: String, at: usize) -> Self {
        let (variants, fields) = (BTreeMap::new(), Vec::new());
        Self { name, default: None, variants, fields, at }
    }
}

/// Imports that the printed types need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    pub(super) btree_map: bool,
    pub(super) json_map: bool,
    pub(super) value: bool,
    pub(super) int_or_string: bool,
    pub(super) time: bool,
}

/// The types of a module.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// Whether keywords that Rust's types imply are corrected.
    pub(super) exact: bool,
    /// Names of types.
    pub(super) names: UniqueIdentifiers,
    /// Names of the types of the kind's own fields.
    pub(super) root_names: Vec<String>,
    /// Names of functions.
    pub(super) functions: UniqueIdentifiers,
    /// Names of the functions of defaults, by fields and sources.
    pub(super) defaults: BTreeMap<(String, String), String>,
    /// Source of the types, in the order in which they were found.
    pub(super) source: Vec<String>,
    /// Printed types by their schemas, as JSON: equal schemas share a type.
    pub(super) printed: BTreeMap<String, PrintedType>,
    /// Differences, with their paths.
    pub(super) warnings: Vec<String>,
    pub(super) uses: Uses,
    /// Numbers of fields that allow null, and of numbers that have a format, unlike the schema.
    pub(super) loosened: (usize, usize),
}

/// Position of a schema.
#[derive(Clone, Debug)]
pub(super) struct SchemaPosition {
    /// Path from the root.
    pub(super) path: String,
    /// Name for the type of this place.
    pub(super) name: String,
    /// Number of types around this place.
    pub(super) level: usize,
    /// Whether the description belongs to the type, because there is no field for it.
    pub(super) is_documented: bool,
    /// Whether the place is a field of the kind, which has no attributes: the default belongs to
    /// the type.
    pub(super) is_root_field: bool,
    /// Whether the place is the status, which is stored in part.
    pub(super) is_status: bool,
}

impl SchemaPosition {
    /// Position of the element of a list or of the value of a map.
    pub(super) fn element(&self, step: &str) -> Self {
        let name = singular(&self.name);
        let name = if name == self.name { format!("{name}Item") } else { name };
        let path = format!("{}{step}", self.path);
        let (is_root_field, is_status) = (false, false);
        Self { path, name, level: self.level, is_documented: true, is_root_field, is_status }
    }
}

impl Types {
    /// Returns the printed enum or struct of a name.
    pub(super) fn printed(&self, name: &str) -> Option<&PrintedType> {
        self.printed.values().find(|printed| printed.name == name)
    }

    /// Returns the name for the type of a field. Names of types below the `spec` have no part for
    /// `spec`, unless another field of the kind has that name.
    pub(super) fn type_name(&self, owner: &str, place: &SchemaPosition, json: &str) -> String {
        let is_spec = place.is_root_field && place.path == ".spec";
        let short = owner.strip_suffix("Spec").filter(|_| is_spec);
        let short = short.map(|kind| format!("{kind}{}", pascal(json)));
        let is_free = |name: &String| !self.root_names.contains(name);
        short.filter(is_free).unwrap_or_else(|| format!("{owner}{}", pascal(json)))
    }

    /// Returns the fields of the struct that a type is, or that the items of a list are.
    pub(super) fn fields_of(&self, rust: &str) -> Vec<FieldName> {
        self.printed(inner(rust)).map(|printed| printed.fields.clone()).unwrap_or_default()
    }
}

/// Returns the type inside of an option or list.
pub(super) fn inner(rust: &str) -> &str {
    let inside = |rust: &'_ str| -> Option<usize> {
        let before = ["Option<", "Vec<"].into_iter().find(|before| rust.starts_with(before))?;
        rust.ends_with('>').then_some(before.len())
    };
    let mut rust = rust;
    while let Some(from) = inside(rust) {
        rust = &rust[from..rust.len() - 1];
    }
    rust
}

/// Whether the type has a format that the schema does not have.
pub(super) fn implied_format(shape: &RustShape, node: &SchemaNode) -> bool {
    let covered = shape.covered.as_ref();
    covered.is_some_and(|covered| covered.contains_key("format")) && !node.contains_key("format")
}
