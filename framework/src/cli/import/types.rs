//! Schemas to types: one struct for each object with named fields, one enum for each list of texts.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::attributes::{DERIVE, SchemaAttributes};
use super::documentation::Documentation;
use super::fields;
use super::names::{Names, singular};

/// Deepest nesting of types; values below are `serde_json::Value`, with their schema as it is.
const MOST_LEVELS: usize = 24;
/// Largest number of types of a module; values of others are `serde_json::Value`.
const MOST_TYPES: usize = 4_000;
/// Largest number of variants of an enum; texts with more choices are `String`.
const MOST_VARIANTS: usize = 200;

/// A schema: always a JSON object.
pub(super) type Node = Map<String, Value>;

/// Rust type of a schema.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The type.
    pub(super) rust: String,
    /// Type that describes it, if the type itself has no schema.
    pub(super) with: Option<String>,
    /// Keywords that the type has by itself; `None`: it allows any value, and has those that an
    /// attribute adds.
    pub(super) covered: Option<Node>,
    /// Whether it implements `Default`.
    pub(super) has_default: bool,
    /// Whether it is a text or a number, whose bounds have attributes of their own.
    pub(super) is_scalar: bool,
}

impl Shape {
    /// A type whose schema has these keywords.
    fn of(rust: &str, covered: Value) -> Self {
        let covered = covered.as_object().cloned();
        let is_scalar = matches!(rust, "String" | "i32" | "i64" | "f32" | "f64");
        Self { rust: rust.to_owned(), with: None, covered, has_default: true, is_scalar }
    }

    /// Returns the keywords of `node` that the type does not have by itself.
    pub(super) fn missing(&self, node: &Node) -> Node {
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
pub(super) struct Printed {
    pub(super) name: String,
    has_default: bool,
    /// Variants of an enum by their texts.
    pub(super) variants: BTreeMap<String, String>,
}

/// Imports that the printed types need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Uses {
    pub(super) map: bool,
    pub(super) value: bool,
    pub(super) int_or_string: bool,
}

/// The types of one module.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// Whether keywords that Rust's types imply are corrected.
    pub(super) exact: bool,
    /// Names of types.
    pub(super) names: Names,
    /// Names of functions.
    pub(super) functions: Names,
    /// Source of the types, in the order in which they were found.
    pub(super) source: Vec<String>,
    /// Printed types by their schemas, as JSON: equal schemas share a type.
    pub(super) printed: BTreeMap<String, Printed>,
    /// Differences, with their paths.
    pub(super) warnings: Vec<String>,
    pub(super) uses: Uses,
    /// Numbers of fields that allow null, and of numbers that have a format, unlike the schema.
    pub(super) loosened: (usize, usize),
}

/// Position of a schema.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Path from the root.
    pub(super) path: String,
    /// Name for its type.
    pub(super) name: String,
    /// Number of types around it.
    pub(super) level: usize,
    /// Whether the description belongs to the type, because there is no field for it.
    pub(super) is_documented: bool,
    /// Whether it is a field of the kind, which has no attributes: the default belongs to the type.
    pub(super) is_root_field: bool,
    /// Whether it is the status, which is stored in part.
    pub(super) is_status: bool,
}

impl Place {
    /// Position of the element of a list or of the value of a map.
    fn element(&self, step: &str) -> Self {
        let name = singular(&self.name);
        let name = if name == self.name { format!("{name}Item") } else { name };
        let path = format!("{}{step}", self.path);
        let (is_root_field, is_status) = (false, false);
        Self { path, name, level: self.level, is_documented: true, is_root_field, is_status }
    }
}

impl Types {
    /// Returns the printed enum or struct of a name.
    pub(super) fn printed(&self, name: &str) -> Option<&Printed> {
        self.printed.values().find(|printed| printed.name == name)
    }

    /// Returns the type of a schema; prints the types that it needs.
    pub(super) fn shape(&mut self, node: &Node, place: &Place) -> Shape {
        let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
        let format = text("format");
        if node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            self.uses.int_or_string = true;
            return Shape { with: Some("Value".to_owned()), ..self.any("IntOrString") };
        }
        match text("type") {
            "boolean" => Shape::of("bool", json!({ "type": "boolean" })),
            "integer" if format == "int32" => {
                Shape::of("i32", json!({ "type": "integer", "format": "int32" }))
            }
            "integer" => Shape::of("i64", json!({ "type": "integer", "format": "int64" })),
            "number" if format == "float" => {
                Shape::of("f32", json!({ "type": "number", "format": "float" }))
            }
            "number" => Shape::of("f64", json!({ "type": "number", "format": "double" })),
            "string" => self.text(node, place),
            "array" => self.list(node, place),
            "object" => self.object(node, place),
            _ => self.any("Value"),
        }
    }

    /// The type of any value.
    fn any(&mut self, rust: &str) -> Shape {
        self.uses.value = true;
        Shape { covered: None, ..Shape::of(rust, Value::Null) }
    }

    /// The type of a text: an enum if its values are listed.
    fn text(&mut self, node: &Node, place: &Place) -> Shape {
        let plain = Shape::of("String", json!({ "type": "string" }));
        let Some(Value::Array(values)) = node.get("enum") else { return plain };
        let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if texts.len() != values.len() || texts.is_empty() || texts.len() > MOST_VARIANTS {
            return plain;
        }
        let mut unique = texts.clone();
        unique.sort_unstable();
        unique.dedup();
        if unique.len() != texts.len() || self.source.len() >= MOST_TYPES {
            return plain;
        }
        let covered = json!({ "type": "string", "enum": values });
        let printed = self.enumeration(&texts, node, place);
        Shape { has_default: false, ..Shape::of(&printed.name, covered) }
    }

    /// Prints an enum.
    fn enumeration(&mut self, texts: &[&str], node: &Node, place: &Place) -> Printed {
        let docs = Documentation::of(description(node, place));
        let key = format!("enum {texts:?} {docs:?}");
        if let Some(printed) = self.printed.get(&key) {
            return printed.clone();
        }
        let name = self.names.kind(&place.name);
        let mut source = String::new();
        docs.print("", &mut source);
        source
            .push_str(&format!("#[derive({})]\n", DERIVE.replace("Debug, ", "Copy, Debug, Eq, ")));
        SchemaAttributes { description: docs.description, ..SchemaAttributes::default() }
            .print("", &mut source);
        source.push_str(&format!("pub enum {name} {{\n"));
        let (mut names, mut variants) = (Names::default(), BTreeMap::new());
        for text in texts {
            let variant = names.variant(text);
            if variant != *text {
                source.push_str(&format!("    #[serde(rename = {text:?})]\n"));
            }
            source.push_str(&format!("    {variant},\n"));
            variants.insert((*text).to_owned(), variant);
        }
        source.push_str("}\n");
        self.source.push(source);
        let printed = Printed { name, has_default: false, variants };
        self.printed.insert(key, printed.clone());
        printed
    }

    /// The type of a list.
    fn list(&mut self, node: &Node, place: &Place) -> Shape {
        let Some(Value::Object(items)) = node.get("items") else { return self.any("Value") };
        let inner = self.element(items, &place.element("[]"));
        let covered = json!({ "type": "array", "items": inner.covered });
        Shape {
            with: inner.with.map(|with| format!("Vec<{with}>")),
            ..Shape::of(&format!("Vec<{}>", inner.rust), covered)
        }
    }

    /// The type of the element of a list, or of the value of a map. Its covered schema is the whole
    /// one if no attribute is missing.
    fn element(&mut self, node: &Node, place: &Place) -> Shape {
        let mut shape = self.shape(node, place);
        let mut missing = shape.missing(node);
        let is_nullable = node.get("nullable") == Some(&Value::Bool(true));
        if is_nullable {
            shape.rust = format!("Option<{}>", shape.rust);
            shape.with = shape.with.map(|with| format!("Option<{with}>"));
        }
        // Only types of this module have a description of their own.
        let is_own = self.printed(shape.rust.trim_start_matches("Option<").trim_end_matches('>'));
        if node.contains_key("description") && is_own.is_none() {
            missing.insert("description".to_owned(), Value::Null);
        }
        if node.contains_key("default") {
            missing.insert("default".to_owned(), Value::Null);
        }
        let is_whole = shape.covered.is_some() && missing.is_empty();
        let has_format = implied_format(&shape, node);
        if is_whole && !(self.exact && has_format) {
            self.loosened.1 += usize::from(has_format);
            shape.covered = Some(node.clone());
        } else if has_format {
            // The schema of the element is written in full.
            shape.covered = None;
        }
        shape
    }

    /// The type of an object: a struct, a map, or any value.
    fn object(&mut self, node: &Node, place: &Place) -> Shape {
        let has_fields =
            node.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        if has_fields && place.level < MOST_LEVELS && self.source.len() < MOST_TYPES {
            let printed = self.structure(node, place);
            let mut covered = node.clone();
            covered.remove("default");
            return Shape {
                has_default: printed.has_default,
                ..Shape::of(&printed.name, Value::Object(covered))
            };
        }
        match node.get("additionalProperties") {
            Some(Value::Object(values)) if !has_fields && !values.is_empty() => {
                let inner = self.element(values, &place.element(".*"));
                self.uses.map = true;
                let covered = json!({ "type": "object", "additionalProperties": inner.covered });
                Shape {
                    with: inner.with.map(|with| format!("BTreeMap<String, {with}>")),
                    ..Shape::of(&format!("BTreeMap<String, {}>", inner.rust), covered)
                }
            }
            _ => self.any("Value"),
        }
    }

    /// Prints a struct.
    fn structure(&mut self, node: &Node, place: &Place) -> Printed {
        let docs = Documentation::of(description(node, place));
        let mut shape = node.clone();
        shape.retain(|key, _| !matches!(key.as_str(), "description" | "default" | "nullable"));
        // The types of the kind's own fields have more attributes than others.
        let own = if place.is_root_field { place.path.as_str() } else { "" };
        let key = format!("struct {} {docs:?} {own}", Value::Object(shape));
        if let Some(printed) = self.printed.get(&key) {
            return printed.clone();
        }
        let name = self.names.kind(&place.name);
        // The place of the type is before those of its fields.
        let at = self.source.len();
        self.source.push(String::new());
        let (source, has_default) = fields::structure(self, node, place, &name, &docs);
        self.source[at] = source;
        let printed = Printed { name, has_default, variants: BTreeMap::new() };
        self.printed.insert(key, printed.clone());
        printed
    }
}

/// Returns the description that belongs to the type itself.
fn description<'a>(node: &'a Node, place: &Place) -> &'a str {
    let text = node.get("description").and_then(Value::as_str).unwrap_or_default();
    if place.is_documented { text } else { "" }
}

/// Whether the type has a format that the schema does not have.
pub(super) fn implied_format(shape: &Shape, node: &Node) -> bool {
    let covered = shape.covered.as_ref();
    covered.is_some_and(|covered| covered.contains_key("format")) && !node.contains_key("format")
}
