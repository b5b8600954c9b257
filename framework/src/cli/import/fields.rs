//! Fields of structs: types, defaults, and the attributes that complete their schemas.

use serde_json::{Map, Value};

use super::attributes::{DERIVE, SchemaAttributes};
use super::documentation::Documentation;
use super::literals::{number_literal, string};
use super::names::{Names, camel, pascal, snake};
use super::types::{Node, Place, Shape, Types, implied_format};

/// A field before it is printed.
struct Field {
    json: String,
    identifier: String,
    rust: String,
    docs: Documentation,
    /// Arguments of `#[serde(…)]`.
    serde: Vec<String>,
    schema: SchemaAttributes,
    /// Whether derived schemas have it among the required fields.
    is_required: bool,
    has_default: bool,
}

/// Prints a struct; returns its source, and whether it implements `Default`.
pub(super) fn structure(
    types: &mut Types,
    node: &Node,
    place: &Place,
    name: &str,
    docs: &Documentation,
) -> (String, bool) {
    let mut functions = String::new();
    let mut fields = Vec::new();
    let mut names = Names::default();
    let properties = node.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (json, schema) in &properties {
        let Value::Object(mut schema) = schema.clone() else { continue };
        let identifier = names.field(json);
        let below = Place {
            path: format!("{}.{json}", place.path),
            name: format!("{name}{}", pascal(json)),
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
        let of = Of { json, identifier, schema: &schema, parent: node, owner: name };
        fields.push(field(types, of, &below, &mut functions));
    }
    if place.is_status {
        fields.iter_mut().for_each(store_in_part);
    }
    let has_default = fields.iter().all(|field| field.has_default);
    let mut source = String::new();
    docs.print("", &mut source);
    let derive =
        if has_default { DERIVE.replace("Debug, ", "Debug, Default, ") } else { DERIVE.into() };
    source.push_str(&format!("#[derive({derive})]\n"));
    let is_renamed = |field: &Field| field.identifier.trim_start_matches("r#") != field.json;
    let rename_all = fields.iter().any(is_renamed);
    if rename_all {
        source.push_str("#[serde(rename_all = \"camelCase\")]\n");
    }
    let keywords = container_keywords(types, node, &fields, place);
    SchemaAttributes { description: docs.description.clone(), keywords, ..Default::default() }
        .print("", &mut source);
    source.push_str(&format!("pub struct {name} {{\n"));
    for field in &fields {
        print(field, rename_all, &mut source);
    }
    if node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        (types.uses.map, types.uses.value) = (true, true);
        let rest = names.field("rest");
        source.push_str(&format!(
            "    /// Fields that have no schema.\n    #[serde(flatten)]\n    pub {rest}: BTreeMap<String, Value>,\n"
        ));
    }
    source.push_str("}\n");
    source.push_str(&functions);
    (source, has_default)
}

/// Makes each field of a status optional: it is stored in part.
fn store_in_part(field: &mut Field) {
    if field.rust.starts_with("Option<") {
        return;
    }
    field.rust = format!("Option<{}>", field.rust);
    field.serde = optional();
    (field.is_required, field.has_default) = (false, true);
}

/// Arguments of serde for a field that may be absent.
fn optional() -> Vec<String> {
    vec!["default".to_owned(), "skip_serializing_if = \"Option::is_none\"".to_owned()]
}

/// Returns the keywords of an object that its fields do not imply.
fn container_keywords(
    types: &mut Types,
    node: &Node,
    fields: &[Field],
    place: &Place,
) -> Map<String, Value> {
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
    let mut keywords: Map<String, Value> = node
        .iter()
        .filter(|(key, _)| !is_implied(key) || is_own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let Some(Value::Array(required)) =
        node.get("required").filter(|list| **list != Value::Array(Vec::new()))
    else {
        return keywords;
    };
    if place.is_status {
        types.warnings.push(format!(
            "{}: no field of a status is required, because a status is stored in part",
            place.path
        ));
        return keywords;
    }
    let is_in = |name: &str| required.iter().any(|required| required == name);
    let derived = fields.iter().filter(|field| field.is_required).count();
    if derived != required.len()
        || !fields.iter().all(|field| field.is_required == is_in(&field.json))
    {
        keywords.insert("required".to_owned(), required.clone().into());
    }
    keywords
}

/// A field's schema, with its surroundings.
struct Of<'a> {
    json: &'a str,
    identifier: String,
    schema: &'a Node,
    parent: &'a Node,
    /// Name of the struct.
    owner: &'a str,
}

/// Returns a field; a function for its default is added to `functions`.
fn field(types: &mut Types, of: Of<'_>, place: &Place, functions: &mut String) -> Field {
    let Of { json, identifier, schema, parent, owner } = of;
    let required = parent.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| names.iter().any(|name| name == json));
    let is_nullable = schema.get("nullable") == Some(&Value::Bool(true));
    let shape = types.shape(schema, place);
    let docs = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let docs = Documentation::of(docs);
    let mut attributes = SchemaAttributes {
        with: shape.with.clone(),
        is_typed: shape.is_scalar || shape.rust.starts_with("Vec<"),
        description: docs.description.clone(),
        keywords: shape.missing(schema),
    };
    implied(types, &shape, schema, &mut attributes);
    let mut field = Field {
        json: json.to_owned(),
        identifier,
        rust: shape.rust.clone(),
        docs,
        serde: Vec::new(),
        schema: attributes,
        is_required: true,
        has_default: shape.has_default,
    };
    let default = schema.get("default").filter(|default| !default.is_null());
    let literal = default.filter(|_| !is_nullable && shape.with.is_none());
    if let Some(literal) = literal.and_then(|value| expression(types, &shape, value)) {
        let function = format!("default_{}_{}", snake(owner), snake(json));
        let function = types.functions.field(&function);
        functions.push_str(&format!("\nfn {function}() -> {} {{\n    {literal}\n}}\n", field.rust));
        field.serde.push(format!("default = {function:?}"));
        (field.is_required, field.has_default) = (false, false);
        return field;
    }
    if let Some(default) = default {
        field.schema.keywords.insert("default".to_owned(), default.clone());
    }
    if is_required && !is_nullable && default.is_none() {
        return field;
    }
    make_optional(types, &mut field, &shape, is_required, is_nullable);
    field
}

/// Makes a field an `Option`, with a schema that allows null as the imported one does.
fn make_optional(
    types: &mut Types,
    field: &mut Field,
    shape: &Shape,
    is_required: bool,
    is_nullable: bool,
) {
    let inner = std::mem::take(&mut field.rust);
    field.rust = format!("Option<{inner}>");
    (field.is_required, field.has_default) = (false, true);
    field.serde = optional();
    if is_required && is_nullable {
        // Absent would be refused, and null is not.
        field.serde = vec!["default".to_owned()];
    }
    let with = field.schema.with.take();
    if shape.covered.is_none() {
        // Any value: an attribute says whether null is one of them.
        field.schema.with = with.map(|with| format!("Option<{with}>"));
        if is_nullable {
            field.schema.keywords.insert("nullable".to_owned(), true.into());
        }
    } else if is_nullable {
        field.schema.with = with.map(|with| format!("Option<{with}>"));
    } else if types.exact {
        field.schema.with = Some(with.unwrap_or(inner));
    } else {
        field.schema.with = with.map(|with| format!("Option<{with}>"));
        types.loosened.0 += 1;
    }
}

/// Removes a format that only the type has, or counts it.
fn implied(types: &mut Types, shape: &Shape, schema: &Node, attributes: &mut SchemaAttributes) {
    if !implied_format(shape, schema) {
        return;
    }
    if types.exact {
        attributes.keywords.insert("format".to_owned(), Value::Null);
    } else {
        types.loosened.1 += 1;
    }
}

/// Returns an expression for a default value, if the type has a literal.
fn expression(types: &Types, shape: &Shape, value: &Value) -> Option<String> {
    match (shape.rust.as_str(), value) {
        ("String", Value::String(text)) => Some(format!("{}.to_owned()", string(text))),
        ("bool", Value::Bool(value)) => Some(value.to_string()),
        ("i32" | "i64", Value::Number(number)) if number.is_i64() => Some(number.to_string()),
        ("f32" | "f64", Value::Number(number)) => {
            // A whole number would be another default than its fraction.
            number.is_f64().then(|| number_literal(number))
        }
        (name, Value::String(text)) => {
            let variant = types.printed(name)?.variants.get(text)?;
            Some(format!("{name}::{variant}"))
        }
        _ => None,
    }
}

/// Adds the lines of a field.
fn print(field: &Field, rename_all: bool, out: &mut String) {
    const INDENT: &str = "    ";
    field.docs.print(INDENT, out);
    let plain = field.identifier.trim_start_matches("r#");
    let name = if rename_all { camel(&field.identifier) } else { plain.to_owned() };
    let mut serde = field.serde.clone();
    if name != field.json {
        serde.insert(0, format!("rename = {:?}", field.json));
    }
    if !serde.is_empty() {
        out.push_str(&format!("{INDENT}#[serde({})]\n", serde.join(", ")));
    }
    field.schema.print(INDENT, out);
    out.push_str(&format!("{INDENT}pub {}: {},\n", field.identifier, field.rust));
}
