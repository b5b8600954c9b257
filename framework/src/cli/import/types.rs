//! Schemas to types: a struct for each object with named fields, an enum for each list of texts.

use serde_json::{Value, json};

use super::attributes::{DERIVE, SchemaAttributes};
use super::documentation::Documentation;
use super::fields;
use super::keys::{EACH, ValueClass};
use super::module::{PrintedType, RustShape, SchemaNode, SchemaPosition, Types, implied_format};
use super::names::UniqueIdentifiers;

/// Deepest nesting of types; values below are `serde_json::Value`, with an unchanged schema.
const MOST_LEVELS: usize = 24;
/// Largest number of types of a module; values of others are `serde_json::Value`.
const MOST_TYPES: usize = 4_000;
/// Largest number of variants of an enum; texts with more choices are `String`.
const MOST_VARIANTS: usize = 200;

impl Types {
    /// Returns the type of a schema; prints the types that it needs.
    pub(super) fn shape(&mut self, node: &SchemaNode, place: &SchemaPosition) -> RustShape {
        let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
        let format = text("format");
        if node.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
            self.uses.int_or_string = true;
            let covered = json!({ "x-kubernetes-int-or-string": true });
            return RustShape::of("IntOrString", ValueClass::IntOrString, covered).or_default(0);
        }
        let number = |rust: &str, name: &str, format: &str| {
            RustShape::of(rust, ValueClass::Number, json!({ "type": name, "format": format }))
        };
        match text("type") {
            "boolean" => RustShape::of("bool", ValueClass::Other, json!({ "type": "boolean" }))
                .or_default(false),
            "integer" if format == "int32" => number("i32", "integer", "int32").or_default(0),
            "integer" => number("i64", "integer", "int64").or_default(0),
            "number" if format == "float" => number("f32", "number", "float").or_default(0.0),
            "number" => number("f64", "number", "double").or_default(0.0),
            "string" => self.text(node, place),
            "array" => self.list(node, place),
            "object" => self.object(node, place),
            _ => self.any(),
        }
    }

    /// The type of any value.
    fn any(&mut self) -> RustShape {
        self.uses.value = true;
        RustShape::of("Value", ValueClass::Any, Value::Null).or_default(Value::Null)
    }

    /// The type of a text: an enum if the values are listed.
    fn text(&mut self, node: &SchemaNode, place: &SchemaPosition) -> RustShape {
        let Some(Value::Array(values)) = node.get("enum") else {
            if node.get("format").is_some_and(|format| format == "date-time") {
                self.uses.time = true;
                let covered = json!({ "type": "string", "format": "date-time" });
                return RustShape::of("ApiTime", ValueClass::Text, covered);
            }
            return Self::plain_text();
        };
        let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        if texts.len() != values.len() || texts.is_empty() || texts.len() > MOST_VARIANTS {
            return Self::plain_text();
        }
        let mut unique = texts.clone();
        unique.sort_unstable();
        unique.dedup();
        if unique.len() != texts.len() || self.source.len() >= MOST_TYPES {
            return Self::plain_text();
        }
        let default = node.get("default").and_then(Value::as_str).unwrap_or_default();
        let covered = json!({ "type": "string", "enum": values });
        let printed = self.enumeration(&texts, default, node, place);
        RustShape {
            default: printed.default,
            ..RustShape::of(&printed.name, ValueClass::Text, covered)
        }
    }

    fn plain_text() -> RustShape {
        RustShape::of("String", ValueClass::Text, json!({ "type": "string" })).or_default("")
    }

    /// Prints an enum. Its default is that of the first field that has a default.
    fn enumeration(
        &mut self,
        texts: &[&str],
        default: &str,
        node: &SchemaNode,
        place: &SchemaPosition,
    ) -> PrintedType {
        let docs = Documentation::of(description(node, place));
        let key = format!("enum {texts:?} {docs:?}");
        let known = self.printed.get(&key).cloned();
        let is_new_default = !default.is_empty() && texts.contains(&default);
        if let Some(printed) = &known
            && (printed.default.is_some() || !is_new_default)
        {
            return printed.clone();
        }
        let mut printed = known.unwrap_or_else(|| {
            let name = self.names.kind(&place.name);
            self.source.push(String::new());
            PrintedType::new(name, self.source.len() - 1)
        });
        if is_new_default {
            printed.default = Some(default.into());
        }
        self.source[printed.at] = enum_source(&mut printed, texts, &docs);
        self.printed.insert(key, printed.clone());
        printed
    }

    /// The type of a list.
    fn list(&mut self, node: &SchemaNode, place: &SchemaPosition) -> RustShape {
        let Some(Value::Object(items)) = node.get("items") else { return self.any() };
        let inner = self.element(items, &place.element("[]"), true);
        // Server-side apply replaces a list of such values as a whole.
        let mut covered = json!({ "type": "array", "items": inner.covered });
        if inner.rust == "IntOrString" {
            covered["x-kubernetes-list-type"] = "atomic".into();
        }
        let shape = RustShape::of(&format!("Vec<{}>", inner.rust), ValueClass::List, covered);
        RustShape { each: inner.each, ..shape.or_default(json!([])) }
    }

    /// The type of the element of a list, or of the value of a map. The covered schema is the whole
    /// schema if no attribute is missing, or only keys of `each`.
    fn element(&mut self, node: &SchemaNode, place: &SchemaPosition, has_each: bool) -> RustShape {
        let mut shape = self.shape(node, place);
        let mut missing = shape.missing(node);
        let is_nullable = node.get("nullable") == Some(&Value::Bool(true));
        // Only types of this module have a description of their own.
        let has_own = self.printed(&shape.rust).is_some();
        if !std::mem::take(&mut shape.each).is_empty() {
            // `each` is a key of the outermost list only.
            missing.insert("items".to_owned(), Value::Null);
            shape.covered.as_mut().and_then(|covered| covered.remove("items"));
        }
        if is_nullable {
            shape.rust = format!("Option<{}>", shape.rust);
        }
        if node.contains_key("description") && !has_own {
            missing.insert("description".to_owned(), Value::Null);
        }
        if node.contains_key("default") {
            missing.insert("default".to_owned(), Value::Null);
        }
        let has_format = implied_format(&shape, node);
        let is_corrected = self.exact && has_format;
        let is_scalar = matches!(shape.class, ValueClass::Text | ValueClass::Number);
        if has_each
            && is_scalar
            && !is_nullable
            && !is_corrected
            && missing.keys().all(|key| EACH.contains(&key.as_str()))
        {
            shape.each = std::mem::take(&mut missing);
        }
        let is_whole = shape.covered.is_some() && missing.is_empty();
        if is_whole && !is_corrected {
            self.loosened.1 += usize::from(has_format);
            shape.covered = Some(node.clone());
        } else if has_format {
            // The schema of the element is written in full.
            shape.covered = None;
        }
        shape
    }

    /// The type of an object: a struct, a map, or any object.
    fn object(&mut self, node: &SchemaNode, place: &SchemaPosition) -> RustShape {
        let is_kept = node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
        let has_fields = node.contains_key("properties");
        // API servers keep `apiVersion`, `kind` and `metadata` of an embedded resource, which the
        // schema's fields need not list: a struct of the listed fields would lose these three.
        let is_embedded = node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true));
        if is_embedded && (has_fields || !is_kept) {
            return self.any();
        }
        let values = node.get("additionalProperties");
        // An object without fields has no entries; the type distinguishes such an object from
        // others.
        let is_struct = has_fields || (!is_kept && values.is_none());
        if is_struct && place.level < MOST_LEVELS && self.source.len() < MOST_TYPES {
            let printed = self.structure(node, place);
            let mut covered = node.clone();
            covered.remove("default");
            let shape = RustShape::of(&printed.name, ValueClass::Other, Value::Object(covered));
            return RustShape { default: printed.default, ..shape };
        }
        match values {
            Some(Value::Object(values)) if !has_fields && !values.is_empty() => {
                let inner = self.element(values, &place.element(".*"), false);
                self.uses.btree_map = true;
                let covered = json!({ "type": "object", "additionalProperties": inner.covered });
                RustShape::of(
                    &format!("BTreeMap<String, {}>", inner.rust),
                    ValueClass::Map,
                    covered,
                )
                .or_default(json!({}))
            }
            None if is_kept && !has_fields => {
                (self.uses.json_map, self.uses.value) = (true, true);
                let covered =
                    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
                RustShape::of("Map<String, Value>", ValueClass::Map, covered).or_default(json!({}))
            }
            _ => self.any(),
        }
    }

    /// Prints a struct.
    fn structure(&mut self, node: &SchemaNode, place: &SchemaPosition) -> PrintedType {
        let docs = Documentation::of(description(node, place));
        let mut shape = node.clone();
        shape.retain(|key, _| !matches!(key.as_str(), "description" | "default" | "nullable"));
        // The types of the kind's own fields have more attributes than others, and objects without
        // fields have nothing in common.
        let is_shared = !place.is_root_field && node.contains_key("properties");
        let own = if is_shared { "" } else { place.path.as_str() };
        let key = format!("struct {} {docs:?} {own}", Value::Object(shape));
        if let Some(printed) = self.printed.get(&key) {
            return printed.clone();
        }
        let name = self.names.kind(&place.name);
        // The place of the type is before the places of the fields' types.
        let at = self.source.len();
        self.source.push(String::new());
        let mut printed = PrintedType::new(name, at);
        self.source[at] = fields::structure(self, node, place, &mut printed, &docs);
        self.printed.insert(key, printed.clone());
        printed
    }
}

/// Returns the source of an enum, and adds the variants to `printed`.
fn enum_source(printed: &mut PrintedType, texts: &[&str], docs: &Documentation) -> String {
    let mut source = String::new();
    docs.print("", &mut source);
    let default = printed.default.as_ref().map_or("", |_| "Default, ");
    let derives = DERIVE
        .replace("Debug, ", &format!("Copy, Debug, {default}"))
        .replace("PartialEq, ", "PartialEq, Eq, ");
    source.push_str(&format!("#[derive({derives})]\n"));
    SchemaAttributes { description: docs.description.clone(), ..SchemaAttributes::default() }
        .print("", &mut source);
    source.push_str(&format!("pub enum {} {{\n", printed.name));
    let mut names = UniqueIdentifiers::default();
    for text in texts {
        let variant = names.variant(text);
        if printed.default.as_ref().is_some_and(|default| default == text) {
            source.push_str("    #[default]\n");
        }
        if variant != *text {
            source.push_str(&format!("    #[serde(rename = {text:?})]\n"));
        }
        source.push_str(&format!("    {variant},\n"));
        printed.variants.insert((*text).to_owned(), variant);
    }
    source.push_str("}\n");
    source
}

/// Returns the description that belongs to the type.
fn description<'a>(node: &'a SchemaNode, place: &SchemaPosition) -> &'a str {
    let text = node.get("description").and_then(Value::as_str).unwrap_or_default();
    if place.is_documented { text } else { "" }
}
