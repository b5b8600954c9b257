//! The verdict of an API server on the limits of whole numbers.
//!
//! A server reads limits as floating numbers, and compares each limit with type and format of its
//! own field whenever a value is checked: beside a limit that is no such integer no value passes.

use serde_json::{Map, Value};

use crate::crd::faults::Faults;

/// Largest limit of an integer of 64 bits: the floating number below 2^63.
const MOST: f64 = 9_223_372_036_854_774_784.0;

/// Limits in the schema of a number.
const LIMITS: [&str; 3] = ["minimum", "maximum", "multipleOf"];

/// Judges the limits in a schema and below.
pub(super) fn judge(schema: &Value, path: &str, faults: &mut Faults) {
    if schema["type"] == "integer" {
        for limit in LIMITS {
            if let Some(value) = schema[limit].as_f64() {
                integer(schema, (limit, value), path, faults);
            }
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flat_map(Map::iter) {
        judge(field, &format!("{path}.{name}"), faults);
    }
    for (keyword, step) in [("items", "[*]"), ("additionalProperties", "[*]")] {
        if schema[keyword].is_object() {
            judge(&schema[keyword], &format!("{path}{step}"), faults);
        }
    }
}

/// Judges a limit of an integer.
fn integer(schema: &Value, (name, limit): (&str, f64), path: &str, faults: &mut Faults) {
    let most = if schema["format"] == "int32" { f64::from(i32::MAX) } else { MOST };
    if limit.fract() != 0.0 {
        faults.add(format!(
            "`{path}`: {name} is {limit}, and the field is a whole number: an API server refuses each value beside such \
             a limit; write a whole number"
        ));
    } else if limit > most || limit < -most {
        faults.add(format!(
            "`{path}`: {name} is {limit} as the floating number that an API server reads, beyond the integers of the \
             field's format: the server refuses each value then; write at most {most} and at least -{most}, or leave the \
             limit out"
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(schema: &Value) -> String {
        let mut faults = Faults::default();
        judge(schema, ".spec", &mut faults);
        faults.into_result("judge").map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn a_limit_that_is_no_integer_of_its_format_is_a_fault() {
        for (name, format, limit) in [
            ("maximum", "", json!(u64::MAX)),
            ("maximum", "int64", json!(i64::MAX)),
            ("minimum", "int64", json!(i64::MIN)),
            ("maximum", "int32", json!(i64::from(i32::MAX) + 1)),
            ("minimum", "", json!(1.5)),
            ("multipleOf", "", json!(0.5)),
        ] {
            let field = json!({ "type": "integer", "format": format, name: limit });
            let found = fault(&json!({ "properties": { "a": { "items": field } } }));
            assert!(found.contains("`.spec.a[*]`") && found.contains(name), "{limit}: {found}");
        }
    }

    #[test]
    fn limits_of_values_that_servers_read_pass() {
        for field in [
            json!({ "type": "integer", "maximum": i64::MAX - 1023, "minimum": -(i64::MAX - 1023) }),
            json!({ "type": "integer", "format": "int32", "minimum": i32::MIN + 1, "maximum": i32::MAX }),
            json!({ "type": "number", "maximum": 1.5 }),
        ] {
            assert_eq!(fault(&json!({ "properties": { "a": field } })), "");
        }
    }
}
