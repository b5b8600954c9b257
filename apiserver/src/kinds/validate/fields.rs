//! Checks of single fields.

use serde_json::Value;

use super::{cluster, pod};
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// A check, with arguments.
#[derive(Debug)]
pub(super) enum FieldCheck {
    /// The field has a value; the detail of the fault.
    Required(&'static str),
    /// A text is among these.
    OneOf(Vec<&'static str>),
    /// A text is among these, and an empty text is not.
    SetOneOf(Vec<&'static str>),
    /// A text is among these, and must be present.
    NeededOneOf(Vec<&'static str>),
    /// A number is this or more.
    Min(i64),
    /// A number is more than this bound, spelled by the text.
    Above(i64, &'static str),
    /// A number is in a range.
    Range(i64, i64),
    /// A port number, which is 0 if absent.
    Port,
    /// A port number or name, if present.
    OptionalPort,
    /// A DNS label, if present.
    Label,
    /// A DNS subdomain, if present.
    Subdomain,
    /// A DNS subdomain.
    NeededSubdomain,
    /// A map of labels.
    Labels,
    /// A label selector.
    Selector,
    /// An IP address.
    Address,
    /// A number, or a percentage up to 100.
    Amount,
    /// A text without line breaks.
    Line,
    /// A segment of a path, if present.
    Segment,
    /// A qualified name, if present.
    Qualified,
    /// The name of a port, if the field is a text.
    PortName,
}

impl FieldCheck {
    /// Returns the check with a name; `None` for an unknown name or a bad argument.
    pub(super) fn parse(name: &str, arguments: &'static str) -> Option<Self> {
        let words = || arguments.split(' ').collect::<Vec<_>>();
        Some(match name {
            "required" => Self::Required(arguments),
            "one-of" => Self::OneOf(words()),
            "set-one-of" => Self::SetOneOf(words()),
            "needed-one-of" => Self::NeededOneOf(words()),
            "min" => Self::Min(arguments.parse().ok()?),
            "above" => {
                let (number, text) = arguments.split_once(' ')?;
                Self::Above(number.parse().ok()?, text)
            }
            "range" => {
                let (least, most) = arguments.split_once(' ')?;
                Self::Range(least.parse().ok()?, most.parse().ok()?)
            }
            "port" => Self::Port,
            "optional-port" => Self::OptionalPort,
            "label" => Self::Label,
            "subdomain" => Self::Subdomain,
            "needed-subdomain" => Self::NeededSubdomain,
            "labels" => Self::Labels,
            "selector" => Self::Selector,
            "address" => Self::Address,
            "amount" => Self::Amount,
            "line" => Self::Line,
            "segment" => Self::Segment,
            "qualified" => Self::Qualified,
            "port-name" => Self::PortName,
            _ => return None,
        })
    }
}

/// Whether a label selector can be evaluated: keys and values are valid, and operators known.
pub(in crate::kinds) fn is_selector(selector: &Value) -> bool {
    let is_value =
        |value: &Value| value.as_str().is_some_and(|text| names::label_value(text).is_empty());
    let mut labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut terms = selector["matchExpressions"].as_array().into_iter().flatten();
    labels.all(|(key, value)| names::qualified(key).is_empty() && is_value(value))
        && terms.all(|term| {
            let has_values = !is_empty(&term["values"]);
            let mut values = term["values"].as_array().into_iter().flatten();
            let is_known = match term["operator"].as_str().unwrap_or_default() {
                "In" | "NotIn" => has_values,
                "Exists" | "DoesNotExist" => !has_values,
                _ => false,
            };
            let key = term["key"].as_str().unwrap_or_default();
            is_known && names::qualified(key).is_empty() && values.all(is_value)
        })
}

/// Returns the fault of a label selector, which is shown with fields in Go's order.
pub(crate) fn invalid_selector(at: &str, selector: &Value, why: &str) -> Cause {
    let shown = if selector.is_object() { go_selector(selector) } else { selector.to_string() };
    let tail = if why.is_empty() { String::new() } else { format!(": {why}") };
    cause("FieldValueInvalid", at, format!("Invalid value: {shown}{tail}"))
}

/// Prints a label selector with fields in the order of the Go structure; empty fields are left out.
fn go_selector(selector: &Value) -> String {
    let mut parts = Vec::new();
    if !is_empty(&selector["matchLabels"]) {
        parts.push(format!("\"matchLabels\":{}", selector["matchLabels"]));
    }
    let terms = selector["matchExpressions"].as_array().into_iter().flatten();
    let terms: Vec<String> = terms
        .map(|term| {
            let part = |field: &str| Value::from(term[field].as_str().unwrap_or_default());
            let head = format!("\"key\":{},\"operator\":{}", part("key"), part("operator"));
            match &term["values"] {
                values if is_empty(values) => format!("{{{head}}}"),
                values => format!("{{{head},\"values\":{values}}}"),
            }
        })
        .collect();
    if !terms.is_empty() {
        parts.push(format!("\"matchExpressions\":[{}]", terms.join(",")));
    }
    format!("{{{}}}", parts.join(","))
}

/// Whether a field has no value, in terms of Go's structures.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// Appends the faults of a field.
pub(super) fn judge(check: &FieldCheck, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = value.as_str().unwrap_or_default();
    match check {
        FieldCheck::Required(detail) => {
            // An empty structure behind a pointer exists; its own fields are judged.
            let is_there = value.is_object() && (at.ends_with("matchConstraints") || at == "data");
            if is_empty(value) && !is_there {
                causes.push(required(at, detail));
            }
        }
        FieldCheck::OneOf(known) if text.is_empty() || known.contains(&text) => {}
        FieldCheck::SetOneOf(_) if !value.is_string() => {}
        FieldCheck::SetOneOf(known) | FieldCheck::NeededOneOf(known) if known.contains(&text) => {}
        FieldCheck::OneOf(known) | FieldCheck::SetOneOf(known) | FieldCheck::NeededOneOf(known) => {
            causes.push(unsupported(at, text, known));
        }
        FieldCheck::Min(_) | FieldCheck::Above(..) | FieldCheck::Range(..) => {
            number(check, value, at, causes)
        }
        FieldCheck::Port | FieldCheck::OptionalPort => port(check, value, at, causes),
        FieldCheck::Label if !text.is_empty() => named(names::label(text), value, at, causes),
        FieldCheck::Subdomain if !text.is_empty() => {
            named(names::subdomain(text), value, at, causes)
        }
        FieldCheck::NeededSubdomain => {
            named(names::subdomain(text), &Value::from(text), at, causes);
        }
        FieldCheck::Label | FieldCheck::Subdomain => {}
        FieldCheck::Labels => labels(value, at, causes),
        FieldCheck::Selector => selector(value, at, causes),
        FieldCheck::Address => named(cluster::ip_faults(text), value, at, causes),
        FieldCheck::Amount => amount(value, at, causes),
        FieldCheck::Line if text.contains(['\n', '\r']) => {
            causes.push(invalid_value(at, value, "must not contain line breaks"));
        }
        FieldCheck::Line => {}
        FieldCheck::Segment if !text.is_empty() => named(names::path(text), value, at, causes),
        FieldCheck::Qualified if !text.is_empty() => {
            named(names::qualified(text), value, at, causes)
        }
        FieldCheck::Segment | FieldCheck::Qualified => {}
        FieldCheck::PortName if value.is_string() => named(pod::port_name(text), value, at, causes),
        FieldCheck::PortName => {}
    }
}

/// Appends the faults of a name.
pub(super) fn named(faults: Vec<String>, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    causes.extend(faults.iter().map(|why| invalid_value(at, value, why)));
}

/// Appends the fault of a number outside the range.
fn number(check: &FieldCheck, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let held = match (check, value.as_i64()) {
        (_, Some(number)) => number,
        // "zero" marks numbers that are not behind a pointer: absent numbers are 0.
        (FieldCheck::Above(_, "zero"), None) if value.is_null() => 0,
        _ => return,
    };
    let detail = match check {
        FieldCheck::Min(least) if held < *least => {
            format!("must be greater than or equal to {least}")
        }
        FieldCheck::Above(least, word) if held <= *least => format!("must be greater than {word}"),
        FieldCheck::Range(least, most) if !(*least..=*most).contains(&held) => {
            format!("must be between {least} and {most}, inclusive")
        }
        _ => return,
    };
    causes.push(invalid_value(at, &held.into(), &detail));
}

/// Appends the fault of a port number.
fn port(check: &FieldCheck, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    let is_needed = matches!(check, FieldCheck::Port);
    let held = match value {
        Value::Null if is_needed => 0,
        Value::Number(number) => number.as_i64().unwrap_or_default(),
        _ => return,
    };
    if !(1..=65535).contains(&held) {
        causes.push(invalid_value(at, &held.into(), "must be between 1 and 65535, inclusive"));
    }
}

/// Appends the faults of a map of labels.
fn labels(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let faults = names::qualified(key);
        causes.extend(faults.iter().map(|why| invalid_value(at, &Value::from(key.as_str()), why)));
        let faults = names::label_value(value.as_str().unwrap_or_default());
        causes.extend(faults.iter().map(|why| invalid_value(at, value, why)));
    }
}

/// Appends the faults of a label selector.
pub(in crate::kinds) fn selector(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    labels(&value["matchLabels"], &format!("{at}.matchLabels"), causes);
    for (index, item) in value["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let at = format!("{at}.matchExpressions[{index}]");
        let has_values = item["values"].as_array().is_some_and(|values| !values.is_empty());
        match item["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if !has_values => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(required(&format!("{at}.values"), detail));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(forbidden_field(&format!("{at}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let at = format!("{at}.operator");
                causes.push(invalid_value(&at, &other.into(), "not a valid selector operator"));
            }
        }
        let key = &item["key"];
        let faults = names::qualified(key.as_str().unwrap_or_default());
        causes.extend(faults.iter().map(|why| invalid_value(&format!("{at}.key"), key, why)));
        for (number, value) in item["values"].as_array().into_iter().flatten().enumerate() {
            let faults = names::label_value(value.as_str().unwrap_or_default());
            named(faults, value, &format!("{at}.values[{number}]"), causes);
        }
    }
}

/// Appends the faults of a number or percentage.
pub(super) fn amount(value: &Value, at: &str, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|number| number < 0) {
        causes.push(invalid_value(at, value, "must be greater than or equal to 0"));
    }
    let Some(text) = value.as_str() else { return };
    let digits = text
        .strip_suffix('%')
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()));
    match digits {
        None => {
            let detail = "a valid percent string must be a numeric string followed by an ending '%' \
                          (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
            causes.push(invalid_value(at, value, detail));
        }
        Some(digits) if digits.parse::<u64>().is_ok_and(|share| share <= 100) => {}
        Some(_) => causes.push(invalid_value(at, value, "must not be greater than 100%")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_shown_with_its_labels_first() {
        let selector = json!({"matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]});
        let shown = "{\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"k\",\
                     \"operator\":\"In\",\"values\":[\"v\"]}]}";
        let fault = invalid_selector("s", &selector, "why");
        assert_eq!(fault.message, format!("Invalid value: {shown}: why"));
        assert_eq!(invalid_selector("s", &json!({}), "").message, "Invalid value: {}");
    }
}
