//! Objects in the form of the server's own Go types, which some refusals print.
//!
//! `internal.types` was written by `tests/kube-apiserver/record-internal.py`. Each line is a type:
//!
//! ```text
//! NAME FIELD…
//! FIELD  NAME[=json]:TYPE   json: the name in the versioned form, unless it is NAME with a small
//!                           first letter
//!        ^m                 the fields of the metadata, among those of the type
//! TYPE   s n b y            string, number, boolean, bytes
//!        q x t              quantity, int-or-string, time
//!        m l .              metadata, label selector, anything
//!        *T [T {T @NAME     pointer, list, map, another type
//! ```

// DESIGN.md, 285: Go's own types are data, so that refusals print them

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// The file.
const TEXT: &str = include_str!("internal.types");
/// Fields of a Pod's spec that the server's own type has in the security context.
const IN_CONTEXT: [&str; 5] =
    ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers"];

/// A field of a type.
struct GoField {
    /// Name in Go; empty for the embedded metadata.
    name: &'static str,
    /// Name in the versioned form.
    json: String,
    kind: &'static str,
}

/// All types by name.
static TYPES: LazyLock<BTreeMap<&'static str, Vec<GoField>>> = LazyLock::new(|| {
    let lines = TEXT.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, rest)| (name, rest.split_whitespace().map(field).collect())).collect()
});

/// Reads a field.
fn field(word: &'static str) -> GoField {
    let Some((head, kind)) = word.split_once(':') else {
        return GoField { name: "", json: "metadata".to_owned(), kind: "m" };
    };
    let (name, json) = head.split_once('=').unwrap_or((head, ""));
    let json = if json.is_empty() {
        let (first, rest) = name.split_at(1);
        first.to_lowercase() + rest
    } else {
        json.to_owned()
    };
    GoField { name, json, kind }
}

/// A value with fields in the order of Go.
enum GoValue {
    /// Printed as it is.
    Plain(Value),
    List(Vec<GoValue>),
    /// Fields, by the text of the name.
    Fields(Vec<(String, GoValue)>),
}

/// Returns a value of a type in compact JSON, such as `core.PodSpec`.
pub(crate) fn compact(name: &str, value: &Value) -> String {
    let mut text = String::new();
    write(&printed(&format!("@{name}"), value), None, &mut text);
    text
}

/// Returns a value of a type in JSON with a field a line.
pub(crate) fn lines(name: &str, value: &Value) -> String {
    let mut text = String::new();
    write(&printed(&format!("@{name}"), value), Some(0), &mut text);
    text
}

/// Brings a value of a type into the printed form.
fn printed(kind: &str, value: &Value) -> GoValue {
    let (sign, rest) = kind.split_at(1.min(kind.len()));
    match (sign, value) {
        ("*", Value::Null) => GoValue::Plain(Value::Null),
        ("*", value) => printed(rest, value),
        ("[", Value::Array(items)) => {
            GoValue::List(items.iter().map(|item| printed(rest, item)).collect())
        }
        ("{", Value::Object(entries)) => GoValue::Fields(
            entries.iter().map(|(key, value)| (key.clone(), printed(rest, value))).collect(),
        ),
        ("@", value) => structure(rest, value),
        ("l", Value::Object(selector)) => self::selector(selector),
        ("m", value) => metadata(value),
        ("s", Value::Null) => GoValue::Plain("".into()),
        ("n" | "x", Value::Null) => GoValue::Plain(0.into()),
        ("b", Value::Null) => GoValue::Plain(false.into()),
        ("q", Value::Null) => GoValue::Plain("0".into()),
        (_, value) => GoValue::Plain(value.clone()),
    }
}

/// Brings a structure into the printed form.
fn structure(name: &str, value: &Value) -> GoValue {
    let mut moved = Value::Null;
    if name == "core.PodSpec" && value.is_object() {
        moved = value.clone();
        move_context(&mut moved);
    }
    let value = if moved.is_null() { value } else { &moved };
    let mut fields = Vec::new();
    for field in TYPES.get(name).into_iter().flatten() {
        let inner = printed(field.kind, &value[field.json.as_str()]);
        match inner {
            GoValue::Fields(more) if field.name.is_empty() => fields.extend(more),
            inner => fields.push((field.name.to_owned(), inner)),
        }
    }
    GoValue::Fields(fields)
}

/// Moves the fields of a Pod's spec that belong to the security context.
fn move_context(spec: &mut Value) {
    let moved: Vec<(&str, Value)> =
        IN_CONTEXT.iter().map(|field| (*field, spec[*field].take())).collect();
    let has_moved = moved.iter().any(|(_, value)| !value.is_null());
    if spec["securityContext"].is_null() && !has_moved {
        return;
    }
    if !spec["securityContext"].is_object() {
        spec["securityContext"] = Value::Object(Map::new());
    }
    for (field, value) in moved.into_iter().filter(|(_, value)| !value.is_null()) {
        spec["securityContext"][field] = value;
    }
}

/// Brings a label selector into the printed form: the fields that are set.
fn selector(selector: &Map<String, Value>) -> GoValue {
    let mut fields = Vec::new();
    let is_set = |value: &Value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if let Some(labels) = selector.get("matchLabels").filter(|labels| is_set(labels)) {
        fields.push(("matchLabels".to_owned(), GoValue::Plain(labels.clone())));
    }
    let terms = selector.get("matchExpressions").and_then(Value::as_array);
    if let Some(terms) = terms.filter(|terms| !terms.is_empty()) {
        let terms = terms.iter().map(|term| {
            let mut parts = Vec::new();
            for field in ["key", "operator", "values"] {
                if field != "values" || is_set(&term[field]) {
                    parts.push((field.to_owned(), GoValue::Plain(term[field].clone())));
                }
            }
            GoValue::Fields(parts)
        });
        fields.push(("matchExpressions".to_owned(), GoValue::List(terms.collect())));
    }
    GoValue::Fields(fields)
}

/// Brings metadata into the printed form, which is that of the versioned types.
fn metadata(value: &Value) -> GoValue {
    /// Fields of metadata, in the order of Go.
    const FIELDS: [&str; 15] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    let set = FIELDS.iter().filter(|field| !value[**field].is_null());
    GoValue::Fields(
        set.map(|field| ((*field).to_owned(), GoValue::Plain(value[*field].clone()))).collect(),
    )
}

/// Writes a printed value, compact or with the depth of indentation.
fn write(value: &GoValue, depth: Option<usize>, text: &mut String) {
    let inner = depth.map(|depth| depth + 1);
    let line = |depth: Option<usize>, text: &mut String| {
        if let Some(depth) = depth {
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', depth));
        }
    };
    match value {
        GoValue::Plain(plain) => write_plain(plain, depth, text),
        GoValue::List(items) if items.is_empty() => text.push_str("[]"),
        GoValue::Fields(fields) if fields.is_empty() => text.push_str("{}"),
        GoValue::List(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                line(inner, text);
                write(item, inner, text);
            }
            line(depth, text);
            text.push(']');
        }
        GoValue::Fields(fields) => {
            text.push('{');
            for (index, (name, value)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                line(inner, text);
                let gap = if depth.is_some() { " " } else { "" };
                let _ = write!(text, "{}:{gap}", escaped(&Value::from(name.as_str())));
                write(value, inner, text);
            }
            line(depth, text);
            text.push('}');
        }
    }
}

/// Writes a value in the usual form.
fn write_plain(value: &Value, depth: Option<usize>, text: &mut String) {
    let form = match value {
        Value::Array(items) => GoValue::List(items.iter().cloned().map(GoValue::Plain).collect()),
        Value::Object(fields) => GoValue::Fields(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), GoValue::Plain(value.clone())))
                .collect(),
        ),
        scalar => return text.push_str(&escaped(scalar)),
    };
    write(&form, depth, text);
}

/// Returns a scalar in JSON with the escapes of Go, which spare pages of HTML.
fn escaped(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_used_type_is_in_the_table() {
        for field in TYPES.values().flatten() {
            if let Some((_, name)) = field.kind.split_once('@') {
                assert!(TYPES.contains_key(name), "{name}");
            }
        }
    }

    #[test]
    fn unset_fields_are_printed_as_gos_zero_values() {
        assert_eq!(
            compact("core.Toleration", &json!({"key": "a<b"})),
            "{\"Key\":\"a\\u003cb\",\"Operator\":\"\",\"Value\":\"\",\"Effect\":\"\",\
             \"TolerationSeconds\":null}"
        );
        let claim = compact("core.PodResourceClaim", &json!({"name": "x"}));
        assert!(claim.ends_with("\"ResourceClaimTemplateName\":null}"), "{claim}");
    }

    #[test]
    fn the_network_of_the_node_is_a_part_of_the_context() {
        let spec = compact("core.PodSpec", &json!({"hostNetwork": true}));
        assert!(spec.contains("\"SecurityContext\":{\"HostNetwork\":true,\"HostPID\":false"));
        assert!(compact("core.PodSpec", &json!({})).contains("\"SecurityContext\":null"));
    }

    #[test]
    fn lines_are_indented_by_one_blank() {
        let text = lines("core.PodTemplateSpec", &json!({"metadata": {"labels": {"a": "b"}}}));
        assert!(
            text.starts_with("{\n \"labels\": {\n  \"a\": \"b\"\n },\n \"Spec\": {\n"),
            "{text}"
        );
    }
}
