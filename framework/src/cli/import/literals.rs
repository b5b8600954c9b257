//! Values of JSON as literals of Rust.

use serde_json::Value;

/// Largest number of elements or fields that `json!` takes: the macro recurses with each, and the
/// compiler has a limit.
const MOST_ELEMENTS: usize = 16;
/// Largest number of bytes of a literal in an attribute.
const MOST_BYTES: usize = 4_000;

/// Prints a value as the operand of `json!`: an expression that serializes to the value.
pub(super) fn json(value: &Value) -> String {
    let text = value.to_string();
    if is_large(value) || text.len() > MOST_BYTES {
        return format!(
            "serde_json::from_str::<serde_json::Value>({}).unwrap_or_default()",
            string(&text)
        );
    }
    plain(value)
}

/// Prints a value of few elements.
fn plain(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) => value.to_string(),
        Value::Number(number) => number_literal(number),
        Value::String(text) => string(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key:?}: {}", plain(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

/// Whether a list or an object in the value has many elements.
fn is_large(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.len() > MOST_ELEMENTS || items.iter().any(is_large),
        Value::Object(fields) => fields.len() > MOST_ELEMENTS || fields.values().any(is_large),
        _ => false,
    }
}

/// Prints a number, with a type suffix if the type of a plain literal is too small.
pub(super) fn number_literal(number: &serde_json::Number) -> String {
    match (number.as_i64(), number.as_u64()) {
        (Some(small), _) if i32::try_from(small).is_ok() => grouped(&small.to_string()),
        (Some(large), _) => format!("{}_i64", grouped(&large.to_string())),
        (None, Some(large)) => format!("{}_u64", grouped(&large.to_string())),
        (None, None) => {
            let value = number.as_f64().unwrap_or_default();
            // With a dot or an exponent: a literal of a floating-point number.
            format!("{value:?}")
        }
    }
}

/// Returns a whole number with thousands separated, from six digits on.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    if digits.len() < 6 {
        return number.to_owned();
    }
    let mut text = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Prints a text as a literal, raw if that spares escapes.
pub(super) fn string(text: &str) -> String {
    let is_plain = !text.contains(|c: char| c.is_control());
    if is_plain && text.contains(['\\', '"']) {
        let mut fence = String::new();
        while text.contains(&format!("\"{fence}")) && fence.len() < 8 {
            fence.push('#');
        }
        if fence.len() < 8 {
            return format!("r{fence}\"{text}\"{fence}");
        }
    }
    format!("{text:?}")
}
