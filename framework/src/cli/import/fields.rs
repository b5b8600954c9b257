//! Fields of structs: types, defaults, and the attributes that complete their schemas.

use serde_json::{Map, Value};

use super::attributes::{DERIVE, SchemaAttributes, attribute};
use super::defaults::{Default, key_value, of_field};
use super::documentation::Documentation;
use super::keys::{AttributeKey, ValueClass};
use super::literals::string;
use super::module::{PrintedType, RustShape, SchemaNode, SchemaPosition, Types, implied_format};
use super::names::{FieldName, UniqueIdentifiers, camel};

/// A field before the source is printed.
struct ImportedField {
    json: String,
    identifier: String,
    rust: String,
    docs: Documentation,
    /// Arguments of `#[serde(…)]`.
    serde: Vec<AttributeKey>,
    schema: SchemaAttributes,
    /// Default of the field in JSON, from which the struct's default is built; `None` without a
    /// default.
    default: Option<Value>,
}

impl ImportedField {
    fn is_option(&self) -> bool {
        self.rust.starts_with("Option<")
    }
}

/// Returns the source of a struct, and adds the struct's fields and default to `printed`.
pub(super) fn structure(
    types: &mut Types,
    node: &SchemaNode,
    place: &SchemaPosition,
    printed: &mut PrintedType,
    docs: &Documentation,
) -> String {
    let mut functions = String::new();
    let mut names = UniqueIdentifiers::default();
    let mut fields = fields(types, node, place, &printed.name, &mut names, &mut functions);
    if place.is_status {
        fields.iter_mut().for_each(store_in_part);
    }
    printed.fields = fields.iter().map(field_name).collect();
    printed.default = default_of(&fields);
    let mut source = String::new();
    docs.print("", &mut source);
    let derive = match printed.default {
        Some(_) => DERIVE.replace("Debug, ", "Debug, Default, "),
        None => DERIVE.to_owned(),
    };
    source.push_str(&format!("#[derive({derive})]\n"));
    let is_renamed = |field: &ImportedField| {
        let plain = field.identifier.trim_start_matches("r#");
        plain != field.json && camel(plain) == field.json
    };
    let rename_all = fields.iter().any(is_renamed);
    if rename_all {
        source.push_str("#[serde(rename_all = \"camelCase\")]\n");
    }
    let (class, names_of_fields) = (ValueClass::Type, printed.fields.clone());
    let (keywords, description) = (keywords(types, node, place), docs.description.clone());
    SchemaAttributes {
        class,
        names: names_of_fields,
        keywords,
        description,
        ..SchemaAttributes::default()
    }
    .print("", &mut source);
    let is_open = node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if fields.is_empty() && !is_open {
        source.push_str(&format!("pub struct {} {{}}\n", printed.name));
        return source;
    }
    source.push_str(&format!("pub struct {} {{\n", printed.name));
    for field in &fields {
        print(field, rename_all, &mut source);
    }
    if is_open {
        (types.uses.json_map, types.uses.value) = (true, true);
        let rest = names.field("rest");
        source.push_str(&format!(
            "    /// Fields that have no schema.\n    #[serde(flatten)]\n    pub {rest}: Map<String, Value>,\n"
        ));
    }
    source.push_str("}\n");
    source.push_str(&functions);
    source
}

/// Returns the fields of an object with those that the schema names.
fn fields(
    types: &mut Types,
    node: &SchemaNode,
    place: &SchemaPosition,
    owner: &str,
    names: &mut UniqueIdentifiers,
    functions: &mut String,
) -> Vec<ImportedField> {
    let properties = node.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut fields = Vec::new();
    for (json, schema) in &properties {
        let Value::Object(mut schema) = schema.clone() else { continue };
        let identifier = names.field(json);
        let below = SchemaPosition {
            path: format!("{}.{json}", place.path),
            name: types.type_name(owner, place, json),
            level: place.level + 1,
            is_documented: false,
            is_root_field: false,
            is_status: false,
        };
        if place.is_status && schema.remove("default").is_some() {
            let text =
                "its default is left out: it would be stored with the first write of another field";
            types.warnings.push(format!("{}: {text}", below.path));
        }
        // A status is stored in part, so no field of a status is required.
        let required = node.get("required").and_then(Value::as_array).filter(|_| !place.is_status);
        let is_required = required.is_some_and(|names| names.iter().any(|name| name == json));
        let of = FieldSource { json, identifier, schema: &schema, is_required };
        fields.push(field(types, of, &below, functions));
    }
    fields
}

/// Makes each field of a status optional: a status is stored in part.
fn store_in_part(field: &mut ImportedField) {
    if !field.is_option() {
        field.rust = format!("Option<{}>", field.rust);
        field.serde = left_out();
        field.default = Some(Value::Null);
    }
}

/// Arguments of serde for a field that is left out where the value is absent.
fn left_out() -> Vec<AttributeKey> {
    vec![AttributeKey::value("skip_serializing_if", "\"Option::is_none\"")]
}

fn field_name(field: &ImportedField) -> FieldName {
    let ImportedField { json, identifier, rust, .. } = field;
    FieldName { json: json.clone(), identifier: identifier.clone(), rust: rust.clone() }
}

/// The default of a struct in JSON; `None` if a field has none.
fn default_of(fields: &[ImportedField]) -> Option<Value> {
    let mut object = Map::new();
    for field in fields {
        let default = field.default.clone()?;
        let is_left_out = field.serde == left_out();
        if !is_left_out {
            object.insert(field.json.clone(), default);
        }
    }
    Some(Value::Object(object))
}

/// Returns the keywords of an object schema that the fields do not imply.
fn keywords(types: &mut Types, node: &SchemaNode, place: &SchemaPosition) -> Map<String, Value> {
    let is_implied = |key: &str| {
        matches!(
            key,
            "type"
                | "properties"
                | "required"
                | "description"
                | "default"
                | "nullable"
                | "x-kubernetes-preserve-unknown-fields"
        )
    };
    let is_own = |key: &str| place.is_root_field && key == "default";
    if place.is_status && node.get("required").is_some_and(|names| *names != Value::Array(vec![])) {
        types.warnings.push(format!(
            "{}: no field of a status is required, because a status is stored in part",
            place.path
        ));
    }
    node.iter()
        .filter(|(key, _)| !is_implied(key) || is_own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// A field's schema, with the surroundings.
struct FieldSource<'a> {
    json: &'a str,
    identifier: String,
    schema: &'a SchemaNode,
    is_required: bool,
}

/// Returns a field; a function for its default is added to `functions`.
fn field(
    types: &mut Types,
    of: FieldSource<'_>,
    place: &SchemaPosition,
    functions: &mut String,
) -> ImportedField {
    let FieldSource { json, identifier, schema, is_required } = of;
    let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
    let shape = types.shape(schema, place);
    let docs = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let docs = Documentation::of(docs);
    let mut attributes = SchemaAttributes {
        class: shape.class,
        names: if shape.class == ValueClass::List {
            types.fields_of(&shape.rust)
        } else {
            Vec::new()
        },
        each: shape.each.clone(),
        description: docs.description.clone(),
        keywords: shape.missing(schema),
        ..SchemaAttributes::default()
    };
    correct_format(types, &shape, schema, &mut attributes);
    let mut field = ImportedField {
        json: json.to_owned(),
        identifier,
        rust: shape.rust.clone(),
        docs,
        serde: Vec::new(),
        schema: attributes,
        default: shape.default.clone(),
    };
    let default = schema.get("default").filter(|default| !default.is_null());
    if let Some(value) = default.filter(|_| !is_nullable)
        && let Some(found) = of_field(types, &field.identifier, &shape, value, functions)
    {
        field.default = match &found {
            Default::OfType => shape.default,
            Default::Function(_) => None,
        };
        field.serde.push(match found {
            Default::OfType => AttributeKey::word("default"),
            Default::Function(name) => AttributeKey::value("default", string(&name)),
        });
        if is_required {
            // A required field has no default of serde in its schema.
            field.schema.keys.push(AttributeKey::word("required"));
            field.schema.keywords.insert("default".to_owned(), value.clone());
        }
        return field;
    }
    if is_required && !is_nullable && default.is_none() {
        return field;
    }
    make_optional(types, &mut field, &shape, is_nullable);
    if is_required {
        field.schema.keys.push(AttributeKey::word("required"));
        if default.is_none() {
            // Absent would be refused, and null is not.
            field.serde = Vec::new();
        }
    }
    if let Some(value) = default {
        if is_nullable {
            // Without the field an API server would fill the default in for null.
            field.serde = Vec::new();
        }
        let key = key_value(types, &shape.rust, value).filter(|_| !is_required);
        match key {
            Some(literal) => field.schema.keys.push(AttributeKey::value("default", literal)),
            None => drop(field.schema.keywords.insert("default".to_owned(), value.clone())),
        }
    }
    field
}

/// Makes a field an `Option`, with a schema that allows null as the imported schema does.
fn make_optional(
    types: &mut Types,
    field: &mut ImportedField,
    shape: &RustShape,
    is_nullable: bool,
) {
    let inner = std::mem::take(&mut field.rust);
    field.rust = format!("Option<{inner}>");
    field.default = Some(Value::Null);
    field.serde = left_out();
    if shape.covered.is_none() {
        // Any value: an attribute says whether null is allowed.
        if is_nullable {
            field.schema.keys.push(AttributeKey::word("nullable"));
        }
    } else if is_nullable {
        // An `Option` allows null.
    } else if types.exact {
        // One key decides about the schema; `embedded` is that key already.
        let is_embedded = field.schema.keywords.contains_key("x-kubernetes-embedded-resource");
        field.schema.with = (!is_embedded).then_some(inner);
        field.schema.keywords.insert("nullable".to_owned(), false.into());
    } else {
        types.loosened.0 += 1;
    }
}

/// Removes a format that only the type has, or counts it.
fn correct_format(
    types: &mut Types,
    shape: &RustShape,
    schema: &SchemaNode,
    attributes: &mut SchemaAttributes,
) {
    if !implied_format(shape, schema) {
        return;
    }
    if types.exact {
        attributes.keywords.insert("format".to_owned(), Value::Null);
    } else {
        types.loosened.1 += 1;
    }
}

/// Adds the lines of a field.
fn print(field: &ImportedField, rename_all: bool, out: &mut String) {
    const INDENT: &str = "    ";
    field.docs.print(INDENT, out);
    let plain = field.identifier.trim_start_matches("r#");
    let name = if rename_all { camel(&field.identifier) } else { plain.to_owned() };
    let mut serde = field.serde.clone();
    if name != field.json {
        serde.insert(0, AttributeKey::value("rename", string(&field.json)));
    }
    if !serde.is_empty() {
        out.push_str(&format!("{}\n", attribute(INDENT, "serde", serde)));
    }
    field.schema.print(INDENT, out);
    out.push_str(&format!("{INDENT}pub {}: {},\n", field.identifier, field.rust));
}
