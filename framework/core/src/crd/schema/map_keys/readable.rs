//! The texts that serde reads as keys of a type, from the type's schema.

use serde_json::Value;

use crate::crd::schema::marks::{ALIASES, PARSED, REST, is_described};
use crate::crd::schema::node::{RULES, SchemaObject};

/// The texts that serde reads as keys.
pub(super) enum ReadableKeys {
    Any,
    /// Names of variants without remarks, which schemars lists as fields.
    Listed(Vec<String>),
    /// Words for those that it reads, and their condition in CEL.
    Checked(String, String),
    /// Words for those that it reads.
    Unchecked(String),
    /// Those that no schema describes.
    Other,
}

/// Reads the schema of the keys' type.
pub(super) fn of_schema(key: &SchemaObject) -> ReadableKeys {
    if key.get(PARSED).is_some_and(|mark| !is_described(key, &mark["had"])) {
        return ReadableKeys::Other;
    }
    if let Some(variants) = key.get("anyOf").and_then(Value::as_array) {
        return of_alternatives(key, variants);
    }
    if let Some(variants) = key.get("oneOf").and_then(Value::as_array) {
        // Variants with remarks.
        let names: Option<Vec<Vec<String>>> = variants.iter().map(names_of).collect();
        return names.map_or(ReadableKeys::Other, |names| of_variants(key, names.concat()));
    }
    let kind = match key.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| **kind != "null"),
        kind => kind,
    };
    match kind.and_then(Value::as_str) {
        Some("boolean") => {
            ReadableKeys::Checked("`true` or `false`".into(), "key in ['true', 'false']".into())
        }
        Some("integer") => match key.get("enum").and_then(Value::as_array) {
            Some(numbers) => one_of(&numbers.iter().map(Value::to_string).collect::<Vec<_>>()),
            None => numbers(key),
        },
        Some("string") => match names_of(&Value::Object(key.clone())) {
            Some(names) if key.contains_key(REST) || key.contains_key(ALIASES) => {
                of_variants(key, names)
            }
            Some(names) => ReadableKeys::Listed(names),
            None => texts(key),
        },
        _ => ReadableKeys::Other,
    }
}

/// Keys by an enum that has variants without a tag, which serde tries one after the other.
fn of_alternatives(key: &SchemaObject, variants: &[Value]) -> ReadableKeys {
    if key.contains_key(REST) {
        return ReadableKeys::Any;
    }
    let (mut names, mut words, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
    for variant in variants {
        let Some(schema) = variant.as_object() else { return ReadableKeys::Other };
        if let Some(more) = names_of(variant) {
            names.extend(more);
            continue;
        }
        // serde keeps the key as a text before it tries the variants, and reads no number from it.
        if schema.get("type").is_none_or(|kind| kind != "string") {
            return ReadableKeys::Other;
        }
        match of_schema(schema) {
            ReadableKeys::Any => return ReadableKeys::Any,
            ReadableKeys::Checked(more, condition) => {
                words.push(more);
                conditions.push(format!("({condition})"));
            }
            _ => return ReadableKeys::Other,
        }
    }
    if !names.is_empty()
        && let ReadableKeys::Checked(more, condition) = of_variants(key, names)
    {
        words.insert(0, more);
        conditions.insert(0, format!("({condition})"));
    }
    ReadableKeys::Checked(words.join(" or "), conditions.join(" || "))
}

/// Keys that are the names of variants, or further names that serde reads.
fn of_variants(key: &SchemaObject, mut names: Vec<String>) -> ReadableKeys {
    if key.contains_key(REST) {
        return ReadableKeys::Any;
    }
    let aliases = key.get(ALIASES).and_then(Value::as_array).into_iter().flatten();
    names.extend(aliases.filter_map(Value::as_str).map(str::to_owned));
    one_of(&names)
}

/// Returns the names that the schema of a unit variant, or of several, lists.
fn names_of(schema: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (&schema["const"], &schema["enum"]) {
        (Value::String(name), _) => Some(vec![name.clone()]),
        (_, Value::Array(names)) => names.iter().map(text).collect(),
        _ => None,
    }
}

/// Keys that are one of these.
pub(super) fn one_of(names: &[String]) -> ReadableKeys {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    ReadableKeys::Checked(names.join(", "), format!("key in [{}]", quoted.join(", ")))
}

/// Keys that are whole numbers, within the bounds of their type.
fn numbers(key: &SchemaObject) -> ReadableKeys {
    let (least, most): (i128, i128) = match key.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64" | "uint") => (0, u64::MAX.into()),
        Some("int64" | "int") => (i64::MIN.into(), i64::MAX.into()),
        _ => return ReadableKeys::Other,
    };
    // A conversion may refuse what these do not allow, and no condition below says so.
    const OTHER: &[&str] =
        &["multipleOf", "exclusiveMinimum", "exclusiveMaximum", "allOf", "anyOf", RULES];
    if key.contains_key(PARSED) && OTHER.iter().any(|keyword| key.contains_key(*keyword)) {
        return ReadableKeys::Other;
    }
    let is_zero_refused = match key.get("not") {
        None => false,
        Some(refused) if refused["const"] == 0 => true,
        Some(_) => return ReadableKeys::Other,
    };
    let bound = |name: &str| key.get(name).and_then(Value::as_i64).map(i128::from);
    let least = bound("minimum").map_or(least, |bound| bound.max(least));
    let most = bound("maximum").map_or(most, |bound| bound.min(most));
    let mut words = format!("whole numbers from {least} to {most}");
    let digits = if least < 0 { "^(0|-?[1-9][0-9]*)$" } else { "^(0|[1-9][0-9]*)$" };
    // A conversion of more digits than the type has is an error, and refuses the key.
    let (read, end) = if most > i64::MAX.into() { ("uint", "u") } else { ("int", "") };
    let mut condition = format!("key.matches('{digits}') && {read}(key) <= {most}{end}");
    if least != 0 {
        condition.push_str(&format!(" && {read}(key) >= {least}{end}"));
    }
    if is_zero_refused {
        words.push_str(" without 0");
        condition.push_str(" && key != '0'");
    }
    ReadableKeys::Checked(words, condition)
}

/// Keys that are texts with conditions.
fn texts(key: &SchemaObject) -> ReadableKeys {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let length = |name: &str| key.get(name).and_then(Value::as_u64);
    let (mut words, mut conditions) = (Vec::new(), Vec::new());
    match (length("minLength"), length("maxLength")) {
        (Some(1), Some(1)) => {
            words.push("single characters".to_owned());
            conditions.push("size(key) == 1".to_owned());
        }
        (least, most) => {
            if let Some(least) = least {
                words.push(format!("texts of at least {least} characters"));
                conditions.push(format!("size(key) >= {least}"));
            }
            if let Some(most) = most {
                words.push(format!("texts of at most {most} characters"));
                conditions.push(format!("size(key) <= {most}"));
            }
        }
    }
    if let Some(pattern) = text("pattern") {
        words.push(format!("texts that match {pattern}"));
        conditions.push(format!("key.matches({})", quoted(pattern)));
    }
    let has_other =
        ["not", "allOf", "anyOf", RULES].iter().any(|keyword| key.contains_key(*keyword));
    match text("format") {
        Some("ip" | "ipv4" | "ipv6") => return ReadableKeys::Unchecked("IP addresses".to_owned()),
        Some(_) => return ReadableKeys::Other,
        None if has_other => return ReadableKeys::Other,
        None if conditions.is_empty() => return ReadableKeys::Any,
        None => {}
    }
    ReadableKeys::Checked(words.join(" and "), conditions.join(" && "))
}

/// Returns a text as a literal of CEL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}
