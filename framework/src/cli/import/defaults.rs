//! Defaults of fields as Rust.

use serde_json::Value;

use super::literals::{number_literal, string};
use super::module::{RustShape, Types};
use super::names::snake;

/// Default of a field for serde.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Default {
    /// The value of the type's `Default`: `#[serde(default)]`.
    OfType,
    /// The function that returns the default.
    Function(String),
}

/// Returns the default of a field, if the field's type has an expression for the value; a function
/// that the expression needs is added to `functions`.
pub(super) fn of_field(
    types: &mut Types,
    identifier: &str,
    shape: &RustShape,
    value: &Value,
    functions: &mut String,
) -> Option<Default> {
    let is_same = |default: &Value| {
        default == value || (default.as_f64() == Some(0.0) && value.as_f64() == Some(0.0))
    };
    if shape.default.as_ref().is_some_and(is_same) {
        return Some(Default::OfType);
    }
    let literal = expression(types, &shape.rust, value)?;
    // Fields of the same name and default share a function.
    let plain = format!("default_{}", snake(identifier.trim_start_matches("r#")));
    let rust = shape.rust.as_str();
    let source = format!("() -> {rust} {{\n    {literal}\n}}\n");
    let key = (plain, source);
    if let Some(known) = types.defaults.get(&key) {
        return Some(Default::Function(known.clone()));
    }
    let (plain, source) = &key;
    let name = types.functions.field(plain);
    functions.push_str(&format!("\nfn {name}{source}"));
    types.defaults.insert(key, name.clone());
    Some(Default::Function(name))
}

/// Returns the value of the key `default` for an `Option` of the type, if the type has a literal.
pub(super) fn key_value(types: &Types, rust: &str, value: &Value) -> Option<String> {
    match (rust, value) {
        ("String", Value::String(text)) => Some(string(text)),
        _ => expression(types, rust, value),
    }
}

/// Returns an expression for a value, if the type has a literal.
fn expression(types: &Types, rust: &str, value: &Value) -> Option<String> {
    let items = rust.strip_prefix("Vec<").and_then(|rest| rest.strip_suffix('>'));
    match (rust, value) {
        ("String", Value::String(text)) => Some(format!("{}.to_owned()", string(text))),
        ("bool", Value::Bool(value)) => Some(value.to_string()),
        ("i32" | "i64", Value::Number(number)) if number.is_i64() => {
            Some(number_literal(number).trim_end_matches("_i64").to_owned())
        }
        ("f32" | "f64", Value::Number(number)) => number.as_f64().map(|value| format!("{value:?}")),
        ("IntOrString", Value::String(text)) => {
            Some(format!("IntOrString::String({}.to_owned())", string(text)))
        }
        ("IntOrString", Value::Number(number)) => {
            let number = number.as_i64().and_then(|value| i32::try_from(value).ok())?;
            Some(format!("IntOrString::Int({number})"))
        }
        (_, Value::Array(values)) => {
            let items = items?;
            let values: Option<Vec<String>> =
                values.iter().map(|value| expression(types, items, value)).collect();
            values.map(|values| format!("vec![{}]", values.join(", ")))
        }
        (name, Value::String(text)) => {
            let variant = types.printed(name)?.variants.get(text)?;
            Some(format!("{name}::{variant}"))
        }
        _ => None,
    }
}
