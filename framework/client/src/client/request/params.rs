//! Query parameters from options and from URIs.

use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;

/// Returns the members of `options` as parameters, in their order.
pub(super) fn of<T: Serialize>(options: &T) -> Result<Vec<(String, String)>, String> {
    let members = match serde_json::to_value(options) {
        Ok(Value::Object(members)) => members,
        Ok(Value::Null) => return Ok(Vec::new()),
        Ok(_) => return Err("the options are no struct of query parameters".to_owned()),
        Err(error) => return Err(format!("the options do not become parameters: {error}")),
    };
    let mut parameters = Vec::new();
    for (name, value) in members {
        match value {
            Value::Null => {}
            Value::Array(values) => {
                for value in values {
                    parameters.push((name.clone(), scalar(&name, value)?));
                }
            }
            value => parameters.push((name.clone(), scalar(&name, value)?)),
        }
    }
    Ok(parameters)
}

/// Returns the text of a value; nested objects and arrays are refused.
fn scalar(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        _ => Err(format!("the option `{name}` has parts of its own; a query parameter has none")),
    }
}

/// Parses the parameters of a URI's query, percent-decoded.
pub(super) fn parse(query: &str) -> Vec<(String, String)> {
    let decode =
        |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

/// Formats a duration in Go's syntax, which API servers expect: `30s`, `1500ms`.
pub(super) fn duration(duration: std::time::Duration) -> String {
    // API servers read zero as their own default, so a shorter time is rounded up.
    match duration.as_millis() {
        0 => "1ms".to_owned(),
        millis if millis % 1000 == 0 => format!("{}s", millis / 1000),
        millis => format!("{millis}ms"),
    }
}
