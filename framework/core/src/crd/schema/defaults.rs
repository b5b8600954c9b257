//! Checks that defaults satisfy their schema: otherwise the API server refuses the definition.

use serde_json::Value;

use super::lower::{Lower, Node};

/// Checks every default in `node`.
pub(super) fn check(node: &Node, lower: &mut Lower<'_>) {
    if let Some(default) = node.get("default")
        && let Err((place, message)) = fits(default, node)
    {
        lower.fault(&format!(
            "its default {default}{place} {message}; change the default or the rule"
        ));
    }
    if let Some(Value::Object(properties)) = node.get("properties") {
        for (name, schema) in properties {
            below(name, schema, lower);
        }
    }
    for (key, step) in [("items", "[]"), ("additionalProperties", "*")] {
        if let Some(schema) = node.get(key) {
            below(step, schema, lower);
        }
    }
}

/// Checks the defaults of a nested schema.
fn below(step: &str, schema: &Value, lower: &mut Lower<'_>) {
    if let Value::Object(schema) = schema {
        lower.enter(step);
        check(schema, lower);
        lower.leave();
    }
}

/// Place and description of a fault.
type Misfit = (String, String);

/// Checks `value` against `schema`; the error is the place and the fault.
fn fits(value: &Value, schema: &Node) -> Result<(), Misfit> {
    let wrong = |message: String| Err((String::new(), message));
    if value.is_null() {
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        return if nullable { Ok(()) } else { wrong("is null, which the field may not be".into()) };
    }
    if let Some(expected) = schema.get("type").and_then(Value::as_str)
        && !is_of(value, expected)
    {
        return wrong(format!("is not of type {expected}"));
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.contains(value)
    {
        return wrong(format!("is none of {}", Value::Array(values.clone())));
    }
    bounds(value, schema).or_else(wrong)?;
    children(value, schema)
}

/// Whether `value` is of this JSON type.
fn is_of(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        // In JSON Schema a number without a fraction is an integer.
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "number" => value.is_number(),
        _ => true,
    }
}

/// Checks lengths, sizes and numbers.
fn bounds(value: &Value, schema: &Node) -> Result<(), String> {
    let size = match value {
        Value::String(text) => Some(("Length", text.chars().count())),
        Value::Array(list) => Some(("Items", list.len())),
        Value::Object(map) => Some(("Properties", map.len())),
        _ => None,
    };
    if let Some((what, size)) = size {
        let limit = |prefix: &str| {
            let limit = schema.get(&format!("{prefix}{what}"))?.as_u64()?;
            usize::try_from(limit).ok()
        };
        if let Some(least) = limit("min").filter(|least| size < *least) {
            return Err(format!("is below min{what} {least}"));
        }
        if let Some(most) = limit("max").filter(|most| size > *most) {
            return Err(format!("is above max{what} {most}"));
        }
    }
    let Some(number) = value.as_f64() else { return Ok(()) };
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let strict = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    if let Some(least) = limit("minimum")
        && (number < least || (number == least && strict("exclusiveMinimum")))
    {
        return Err(format!("is below minimum {least}"));
    }
    if let Some(most) = limit("maximum")
        && (number > most || (number == most && strict("exclusiveMaximum")))
    {
        return Err(format!("is above maximum {most}"));
    }
    Ok(())
}

/// Checks the items of a list, or the fields of an object.
fn children(value: &Value, schema: &Node) -> Result<(), Misfit> {
    let inside = |step: String, value: &Value, schema: Option<&Value>| match schema {
        Some(Value::Object(schema)) => {
            fits(value, schema).map_err(|(place, message)| join(step, &place, message))
        }
        _ => Ok(()),
    };
    match value {
        Value::Array(list) => {
            for (i, item) in list.iter().enumerate() {
                inside(format!("[{i}]"), item, schema.get("items"))?;
            }
        }
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let open = schema.contains_key("x-kubernetes-preserve-unknown-fields");
            for (name, value) in map {
                let listed = properties.and_then(|properties| properties.get(name));
                let known = listed.or(schema.get("additionalProperties"));
                // The API server refuses a default with fields that it would prune.
                if known.is_none() && !open {
                    return Err((
                        String::new(),
                        format!("has a field `{name}` that is not in the schema"),
                    ));
                }
                inside(format!(".{name}"), value, known)?;
            }
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
                if name.as_str().is_some_and(|name| !map.contains_key(name)) {
                    return Err((String::new(), format!("lacks the required field {name}")));
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Puts a step before the place of a fault.
fn join(step: String, place: &str, message: String) -> Misfit {
    let place = place.strip_prefix(" at ").unwrap_or(place);
    (format!(" at {step}{place}"), message)
}
