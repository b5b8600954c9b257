//! Constructors of [`Cause`] values with the texts of Kubernetes' field errors.
//!
//! Schema validation, CRD checks and list rules all report the same shape; the texts are here once.

use serde_json::Value;

use crate::served::Cause;

/// Returns a cause; a fault of the whole object has the field `<nil>`.
fn cause(reason: &str, field: &str, message: String) -> Cause {
    // Go's name of a path without elements.
    let field = if field.is_empty() { "<nil>" } else { field };
    Cause { reason: reason.to_owned(), message, field: field.to_owned() }
}

/// Returns the cause `Invalid value: VALUE: DETAIL`.
pub(crate) fn invalid(field: &str, value: &Value, detail: &str) -> Cause {
    cause("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", print(value)))
}

/// Returns the same cause as [`invalid`], for a value that is already printed.
pub(crate) fn invalid_printed(field: &str, value: &str, detail: &str) -> Cause {
    cause("FieldValueInvalid", field, format!("Invalid value: {value}: {detail}"))
}

/// Returns the cause `Invalid value: "TYPE": DETAIL`, for values of a wrong type.
pub(crate) fn type_invalid(field: &str, value: &Value, detail: &str) -> Cause {
    cause("FieldValueTypeInvalid", field, format!("Invalid value: {}: {detail}", print(value)))
}

/// Returns the cause `Required value` with an optional detail.
pub(crate) fn required(field: &str, detail: &str) -> Cause {
    let text = if detail.is_empty() {
        "Required value".to_owned()
    } else {
        format!("Required value: {detail}")
    };
    cause("FieldValueRequired", field, text)
}

/// Returns the cause `Forbidden: DETAIL`.
pub(crate) fn forbidden(field: &str, detail: &str) -> Cause {
    cause("FieldValueForbidden", field, format!("Forbidden: {detail}"))
}

/// Returns the cause `Unsupported value: VALUE: supported values: …`.
pub(crate) fn not_supported<S: AsRef<str>>(field: &str, value: &Value, supported: &[S]) -> Cause {
    let list: Vec<String> = supported.iter().map(|s| quote(s.as_ref())).collect();
    let text =
        format!("Unsupported value: {}: supported values: {}", print(value), list.join(", "));
    cause("FieldValueNotSupported", field, text)
}

/// Returns the cause `Duplicate value: VALUE`.
pub(crate) fn duplicate(field: &str, value: &Value) -> Cause {
    cause("FieldValueDuplicate", field, format!("Duplicate value: {}", print(value)))
}

/// Returns the cause `Too long: may not be more than N bytes`.
pub(crate) fn too_long(field: &str, max: u64) -> Cause {
    let unit = if max == 1 { "byte" } else { "bytes" };
    cause("FieldValueTooLong", field, format!("Too long: may not be more than {max} {unit}"))
}

/// Returns the cause `Too many: N: must have at most MAX items`.
pub(crate) fn too_many(field: &str, actual: usize, max: u64) -> Cause {
    let text = format!("Too many: {actual}: must have at most {max} items");
    cause("FieldValueTooMany", field, text)
}

/// Formats a value in the form of Kubernetes' errors: strings quoted, the rest as JSON.
pub(crate) fn print(value: &Value) -> String {
    match value {
        Value::String(s) => quote(s),
        // Floats differ between Go and JSON.
        Value::Number(n) => number(n),
        other => other.to_string(),
    }
}

/// Formats a number like Go's `%v`.
pub(crate) fn number(n: &serde_json::Number) -> String {
    if n.is_f64() { float(n.as_f64().unwrap_or_default()) } else { n.to_string() }
}

/// Formats a float like Go's `%v`: shortest digits, an exponent below 1e-4 and from 1e6.
pub(crate) fn float(f: f64) -> String {
    let size = f.abs();
    if f == 0.0 || (1e-4..1e6).contains(&size) {
        return format!("{f}");
    }
    let text = format!("{f:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(rest) => ('-', rest),
                None => ('+', exponent),
            };
            // Go writes the exponent with two digits at least.
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// Formats a string like Go's `%q`.
pub(crate) fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32))
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns `path.name`, or the name alone at the root.
pub(crate) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns `path[key]`.
pub(crate) fn key(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}

/// Returns `path[3]`.
pub(crate) fn index(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}

/// Returns the path in the form of faults: without the leading dot that fields of the root have.
pub(super) fn shown(path: &str) -> &str {
    path.strip_prefix('.').unwrap_or(path)
}

/// Returns a fault that names no field, as upstream reports combinations.
pub(super) fn plain(text: String) -> Cause {
    invalid("", &Value::String(String::new()), &text)
}

/// Returns the fault of a value in the body.
pub(super) fn fault(path: &str, value: &Value, text: &str) -> Cause {
    let path = shown(path);
    invalid(path, value, &format!("{path} in body {text}"))
}
