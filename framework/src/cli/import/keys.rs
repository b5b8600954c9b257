//! Keys of `#[schema(…)]` for keywords of a schema.

use std::fmt;

use serde_json::{Map, Value};

use super::literals::{number_literal, string};
use super::names::FieldName;

/// A key of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttributeKey {
    /// `atomic`, or `min = 1`.
    Plain(String),
    /// `range(min = 1, max = 9)`
    Call(String, Vec<AttributeKey>),
}

impl AttributeKey {
    pub(super) fn word(word: &str) -> Self {
        Self::Plain(word.to_owned())
    }

    pub(super) fn value(key: &str, value: impl fmt::Display) -> Self {
        Self::Plain(format!("{key} = {value}"))
    }

    pub(super) fn call(name: &str, parts: Vec<Self>) -> Self {
        Self::Call(name.to_owned(), parts)
    }
}

impl fmt::Display for AttributeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Call(name, parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "{name}({})", parts.join(", "))
            }
        }
    }
}

/// Form of a value, which decides the keys that it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ValueClass {
    /// A boolean, or another value without keys.
    #[default]
    Other,
    Text,
    Number,
    List,
    /// A map, or an object without a type.
    Map,
    /// A value without a type.
    Any,
    /// A number or a text.
    IntOrString,
    /// The attributes stand on the type.
    Type,
}

/// Keywords of list items that have keys in `each(…)`.
pub(super) const EACH: [&str; 7] =
    ["minimum", "maximum", "multipleOf", "minLength", "maxLength", "pattern", "format"];

/// Takes the keywords for which the class has keys, and returns the keys.
pub(super) fn take_keys(
    rest: &mut Map<String, Value>,
    class: ValueClass,
    names: &[FieldName],
    each: &Map<String, Value>,
) -> Vec<AttributeKey> {
    let mut keys = Vec::new();
    match class {
        ValueClass::Number => keys.extend(bounds(rest)),
        ValueClass::Text | ValueClass::IntOrString => {
            keys.extend(range(rest, "length", ["minLength", "maxLength"]));
            keys.extend(text(rest, "pattern", "pattern"));
        }
        ValueClass::List => keys.extend(list(rest, names, each)),
        ValueClass::Map | ValueClass::Type => {
            keys.extend(range(rest, "properties", ["minProperties", "maxProperties"]));
            keys.extend(map_type(rest));
        }
        ValueClass::Any | ValueClass::Other => {}
    }
    if matches!(class, ValueClass::Number | ValueClass::Text) {
        keys.extend(text(rest, "format", "format"));
    }
    if class == ValueClass::Map {
        keys.extend(flag(rest, "x-kubernetes-embedded-resource", "embedded"));
    }
    if matches!(class, ValueClass::Map | ValueClass::Any) {
        keys.extend(flag(rest, "x-kubernetes-preserve-unknown-fields", "preserve"));
    }
    keys.extend(remarks(rest));
    keys
}

/// Takes bounds and multiples of a number.
fn bounds(rest: &mut Map<String, Value>) -> Vec<AttributeKey> {
    let mut keys = Vec::new();
    for (flag, bound, key) in [
        ("exclusiveMinimum", "minimum", "exclusive_min"),
        ("exclusiveMaximum", "maximum", "exclusive_max"),
    ] {
        if rest.get(flag) == Some(&Value::Bool(true))
            && let Some(Value::Number(limit)) = rest.get(bound)
        {
            keys.push(AttributeKey::value(key, number_literal(limit)));
            rest.remove(flag);
            rest.remove(bound);
        }
    }
    match (number(rest, "minimum"), number(rest, "maximum")) {
        (Some(min), Some(max)) => {
            keys.push(AttributeKey::call(
                "range",
                vec![AttributeKey::value("min", min), AttributeKey::value("max", max)],
            ));
        }
        (Some(min), None) => keys.push(AttributeKey::value("min", min)),
        (None, Some(max)) => keys.push(AttributeKey::value("max", max)),
        (None, None) => {}
    }
    keys.extend(number(rest, "multipleOf").map(|of| AttributeKey::value("multiple_of", of)));
    keys
}

/// Takes the keywords of a list and those of the items.
fn list(
    rest: &mut Map<String, Value>,
    names: &[FieldName],
    each: &Map<String, Value>,
) -> Vec<AttributeKey> {
    let mut keys = Vec::new();
    keys.extend(range(rest, "items", ["minItems", "maxItems"]));
    let mut each = each.clone();
    let mut parts = bounds(&mut each);
    parts.extend(range(&mut each, "length", ["minLength", "maxLength"]));
    parts.extend(text(&mut each, "pattern", "pattern"));
    parts.extend(text(&mut each, "format", "format"));
    if !parts.is_empty() {
        keys.push(AttributeKey::call("each", parts));
    }
    let kind = rest.get("x-kubernetes-list-type").and_then(Value::as_str);
    let key = match kind {
        Some(kind @ ("set" | "atomic")) => Some(AttributeKey::word(kind)),
        Some("map") => list_keys(rest, names).map(|keys| {
            AttributeKey::call(
                "list",
                vec![AttributeKey::word("map"), AttributeKey::call("keys", keys)],
            )
        }),
        _ => None,
    };
    if let Some(key) = key {
        rest.remove("x-kubernetes-list-type");
        rest.remove("x-kubernetes-list-map-keys");
        keys.push(key);
    }
    keys
}

/// The keys of a list's items as fields in Rust; `None` if the items have no type with these
/// fields.
fn list_keys(rest: &Map<String, Value>, names: &[FieldName]) -> Option<Vec<AttributeKey>> {
    let keys = rest.get("x-kubernetes-list-map-keys")?.as_array()?;
    let rust = |key: &Value| {
        let field = names.iter().find(|field| *key == field.json.as_str())?;
        Some(AttributeKey::word(&field.identifier))
    };
    keys.iter().map(rust).collect()
}

fn map_type(rest: &mut Map<String, Value>) -> Option<AttributeKey> {
    let key = match rest.get("x-kubernetes-map-type")?.as_str()? {
        "atomic" => AttributeKey::word("atomic"),
        "granular" => AttributeKey::call("map", vec![AttributeKey::word("granular")]),
        _ => return None,
    };
    rest.remove("x-kubernetes-map-type");
    Some(key)
}

/// Takes title, example and documentation.
fn remarks(rest: &mut Map<String, Value>) -> Vec<AttributeKey> {
    let mut keys = Vec::new();
    keys.extend(text(rest, "title", "title"));
    let example = match rest.get("example") {
        Some(Value::String(text)) => Some(string(text)),
        Some(Value::Number(number)) => Some(number_literal(number)),
        Some(Value::Bool(value)) => Some(value.to_string()),
        _ => None,
    };
    if let Some(example) = example {
        rest.remove("example");
        keys.push(AttributeKey::value("example", example));
    }
    let url = rest.get("externalDocs").and_then(Value::as_object).filter(|docs| docs.len() == 1);
    if let Some(url) = url.and_then(|docs| docs.get("url")?.as_str()) {
        keys.push(AttributeKey::value("docs", string(url)));
        rest.remove("externalDocs");
    }
    keys
}

/// Takes two limits: `key(min = 1, max = 9)`, or `key(equal = 3)`.
fn range(rest: &mut Map<String, Value>, key: &str, [min, max]: [&str; 2]) -> Option<AttributeKey> {
    let (min, max) = (number(rest, min), number(rest, max));
    let parts: Vec<AttributeKey> = if min == max {
        min.map(|equal| AttributeKey::value("equal", equal)).into_iter().collect()
    } else {
        let min = min.map(|min| AttributeKey::value("min", min));
        min.into_iter().chain(max.map(|max| AttributeKey::value("max", max))).collect()
    };
    (!parts.is_empty()).then(|| AttributeKey::call(key, parts))
}

fn number(rest: &mut Map<String, Value>, keyword: &str) -> Option<String> {
    let Some(Value::Number(number)) = rest.get(keyword) else { return None };
    let literal = number_literal(number);
    rest.remove(keyword);
    Some(literal)
}

fn text(rest: &mut Map<String, Value>, keyword: &str, key: &str) -> Option<AttributeKey> {
    let Some(Value::String(text)) = rest.get(keyword) else { return None };
    let key = AttributeKey::value(key, string(text));
    rest.remove(keyword);
    Some(key)
}

fn flag(rest: &mut Map<String, Value>, keyword: &str, key: &str) -> Option<AttributeKey> {
    if rest.get(keyword) != Some(&Value::Bool(true)) {
        return None;
    }
    rest.remove(keyword);
    Some(AttributeKey::word(key))
}
