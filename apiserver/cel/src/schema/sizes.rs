//! Sizes of data under a schema: the largest number of elements, and the least bytes of JSON.
//!
//! The figures are those of kube-apiserver (`pkg/cel/limits.go` and `pkg/cel/common/schemas.go` of
//! k8s.io/apiserver 0.36), because the estimate of a rule's cost depends on them.

use serde_json::Value;

use super::{is_set, text};

/// Largest request in bytes.
pub(crate) const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// Bytes of `""`.
pub(super) const MIN_STRING: u64 = 2;
/// Bytes of `true`.
pub(super) const MIN_BOOL: u64 = 4;
/// Bytes of `0`.
pub(super) const MIN_NUMBER: u64 = 1;
/// Bytes of `"0"`.
pub(super) const MIN_DURATION: u64 = 3;
/// Bytes of a date in quotes.
pub(super) const DATE: u64 = 12;
/// Bytes of the shortest date and time in quotes.
pub(super) const MIN_DATE_TIME: u64 = 21;
/// Bytes of the longest date and time in quotes.
const MAX_DATE_TIME: u64 = 32;
/// Bytes of the longest duration in quotes.
const MAX_DURATION: u64 = 32;

/// Member of a schema that is a length; a negative length counts as none.
pub(super) fn limit(schema: &Value, name: &str) -> Option<u64> {
    let value = schema.get(name)?;
    value.as_u64().or_else(|| value.as_f64().map(|value| value.max(0.0) as u64))
}

/// Largest length of a text: in bytes, which may be four for each character that `maxLength`
/// counts.
pub(super) fn max_text(schema: &Value) -> u64 {
    if let Some(length) = limit(schema, "maxLength") {
        return length.saturating_mul(4);
    }
    let values = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
    match values.filter(|_| !is_set(schema, "x-kubernetes-int-or-string")) {
        Some(values) => {
            values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as u64
        }
        None => max_of_request(schema),
    }
}

/// Largest length of a text of the schema's format that a request can hold.
pub(super) fn max_of_request(schema: &Value) -> u64 {
    match text(schema, "format") {
        _ if is_set(schema, "x-kubernetes-int-or-string") => MAX_REQUEST - 2,
        "duration" => MAX_DURATION,
        "date" => DATE,
        "date-time" => MAX_DATE_TIME,
        _ => MAX_REQUEST - 2,
    }
}

/// Largest number of items of a list whose items have at least this size.
pub(super) fn max_items(schema: &Value, min_size: u64) -> u64 {
    limit(schema, "maxItems").unwrap_or((MAX_REQUEST - 2) / (min_size.saturating_add(1)))
}

/// Largest number of entries of a map whose values have at least this size.
pub(super) fn max_properties(schema: &Value, min_size: u64) -> u64 {
    limit(schema, "maxProperties").unwrap_or((MAX_REQUEST - 2) / (min_size.saturating_add(6)))
}
