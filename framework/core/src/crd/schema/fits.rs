//! Judgement of values by a structural schema, with the words of an API server.

use std::cell::RefCell;

use serde_json::Value;
use windlass_cel::library::cidr::Cidr;
use windlass_cel::library::named_format::NamedFormat;
use windlass_cel::library::regex::Regex;

use super::lists::duplicate;
use super::node::SchemaObject;

/// Place and description of a fault.
pub(super) type Misfit = (String, String);

/// Checks `value` against `schema`; the error is the place and the fault.
pub(super) fn fits(value: &Value, schema: &SchemaObject) -> Result<(), Misfit> {
    let wrong = |message: String| Err((String::new(), message));
    if value.is_null() {
        let nullable = schema.get("nullable") == Some(&Value::Bool(true));
        let is_number = schema.get("type").is_some_and(|name| name == "number");
        return match (nullable, is_number) {
            (true, _) => Ok(()),
            (_, true) => wrong("is null, as serde writes infinite numbers and `NaN`".into()),
            _ => wrong("is null, which the field may not be".into()),
        };
    }
    if let Some(expected) = schema.get("type").and_then(Value::as_str)
        && !is_of(value, expected)
    {
        return wrong(format!("is not of type {expected}"));
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.contains(value)
    {
        return wrong(format!("is not one of {}", Value::Array(values.clone())));
    }
    bounds(value, schema).or_else(wrong)?;
    text(value, schema).or_else(wrong)?;
    alternatives(value, schema)?;
    children(value, schema)
}

/// Whether `value` is of this JSON type.
fn is_of(value: &Value, expected: &str) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        // In JSON Schema a number without a fraction is an integer; the server has 64 bits and a
        // sign.
        "integer" => value.is_i64() || (value.is_f64() && value.as_f64().is_some_and(is_whole)),
        "number" => value.is_number(),
        _ => true,
    }
}

/// Whether a number is an integer of 64 bits.
fn is_whole(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() < 9.2e18
}

/// Checks lengths, sizes and numbers.
fn bounds(value: &Value, schema: &SchemaObject) -> Result<(), String> {
    let size = match value {
        Value::String(text) => Some(("Length", text.chars().count())),
        Value::Array(list) => Some(("Items", list.len())),
        Value::Object(map) => Some(("Properties", map.len())),
        _ => None,
    };
    if let Some((unit, size)) = size {
        let limit = |prefix: &str| {
            let limit = schema.get(&format!("{prefix}{unit}"))?.as_u64()?;
            usize::try_from(limit).ok()
        };
        if let Some(least) = limit("min").filter(|least| size < *least) {
            return Err(format!("is below min{unit} {least}"));
        }
        if let Some(most) = limit("max").filter(|most| size > *most) {
            return Err(format!("is above max{unit} {most}"));
        }
    }
    value.as_f64().map_or(Ok(()), |number| numeric(number, schema))
}

/// Checks a number.
fn numeric(number: f64, schema: &SchemaObject) -> Result<(), String> {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let strict = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    if let Some(least) = limit("minimum")
        && (number < least || (number == least && strict("exclusiveMinimum")))
    {
        return Err(match number < least {
            true => format!("is below minimum {least}"),
            false => format!("is not above the exclusive minimum {least}"),
        });
    }
    if let Some(most) = limit("maximum")
        && (number > most || (number == most && strict("exclusiveMaximum")))
    {
        return Err(match number > most {
            true => format!("is above maximum {most}"),
            false => format!("is not below the exclusive maximum {most}"),
        });
    }
    if let Some(unit) = limit("multipleOf")
        && unit > 0.0
        // As the server does: by a division whose result is nearly whole.
        && ((number / unit) - (number / unit).round()).abs() > 1e-9
    {
        return Err(format!("should be a multiple of {unit}"));
    }
    match schema.get("format").and_then(Value::as_str) {
        Some("int32") if number < f64::from(i32::MIN) || number > f64::from(i32::MAX) => {
            Err("must be of type integer with format int32".to_owned())
        }
        _ => Ok(()),
    }
}

/// Checks pattern and format of a text.
fn text(value: &Value, schema: &SchemaObject) -> Result<(), String> {
    let Some(text) = value.as_str() else { return Ok(()) };
    let keyword = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(pattern) = keyword("pattern")
        // A pattern that does not compile is a separate error.
        && compiled(pattern).is_some_and(|compiled| !compiled.is_match(text))
    {
        return Err(format!("should match '{pattern}'"));
    }
    match keyword("format") {
        Some(format) if !has_format(text, format) => Err(format!("must be of type {format}")),
        _ => Ok(()),
    }
}

/// Most compiled patterns that a thread keeps.
const MOST_COMPILED: usize = 32;

thread_local! {
    /// Patterns with their compiled form, the last used one at the end. A test of a kind looks at
    /// thousands of texts with few patterns, and compiling those of addresses takes milliseconds.
    static COMPILED: RefCell<Vec<(String, Option<Regex>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the compiled pattern; `None` for one that does not compile.
fn compiled(pattern: &str) -> Option<Regex> {
    COMPILED.with_borrow_mut(|known| {
        let entry = match known.iter().position(|(text, _)| text == pattern) {
            Some(place) => known.remove(place),
            None => (pattern.to_owned(), Regex::compile(pattern).ok()),
        };
        let found = entry.1.clone();
        known.push(entry);
        if known.len() > MOST_COMPILED {
            known.remove(0);
        }
        found
    })
}

/// Whether a text has a format. Formats of cards, books and colours are left to the server.
fn has_format(text: &str, format: &str) -> bool {
    let named = |format: NamedFormat| format.validate(text).is_empty();
    let address = text.parse::<std::net::IpAddr>();
    match format {
        "date-time" => named(NamedFormat::DateTime),
        "date" => named(NamedFormat::Date),
        "uri" => named(NamedFormat::Uri),
        "byte" => named(NamedFormat::Byte),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => named(NamedFormat::Uuid),
        "ipv4" => address.is_ok_and(|address| address.is_ipv4()),
        "ipv6" => address.is_ok_and(|address| address.is_ipv6()),
        "cidr" => Cidr::parse(text).is_ok(),
        "email" => {
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        }
        "hostname" => !text.is_empty() && text.split('.').all(|label| label.len() <= 63),
        "duration" => is_duration(text),
        "mac" => {
            let mut groups = text.split(':');
            let is_byte = |group: &str| group.len() == 2 && u8::from_str_radix(group, 16).is_ok();
            text.len() == "00:00:00:00:00:00".len() && groups.all(is_byte)
        }
        _ => true,
    }
}

/// Whether a text is a duration for an API server: numbers with units as Go writes them, or any
/// text in which a whole number stands before a unit (kube-openapi's `ParseDuration`): `P1D`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 6] = ["ns", "us", "ms", "s", "m", "h"];
    let is_of_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    let mut is_of_go = !rest.is_empty();
    while is_of_go && !rest.is_empty() {
        let unit = rest.trim_start_matches(is_of_number);
        let end = unit.find(is_of_number).unwrap_or(unit.len());
        let name = unit[..end].replace(['µ', 'μ'], "u");
        is_of_go = unit.len() != rest.len() && UNITS.contains(&name.as_str());
        rest = &unit[end..];
    }
    is_of_go || has_number_with_unit(text)
}

/// Whether a whole number stands before a unit somewhere in a text.
fn has_number_with_unit(text: &str) -> bool {
    // A longer word counts if it begins with the last one: `hours`, `minutes`.
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let is_unit = |word: &str| {
        UNITS.iter().any(|unit| {
            unit.contains(&word) || unit.last().is_some_and(|last| word.starts_with(last))
        })
    };
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let behind = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit());
        let word = behind.trim_start();
        let end = word.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ'));
        let end = end.unwrap_or(word.len());
        if is_unit(&word[..end].to_lowercase()) {
            return true;
        }
        rest = &word[end..];
    }
    false
}

/// Checks alternatives, which know no types.
fn alternatives(value: &Value, schema: &SchemaObject) -> Result<(), Misfit> {
    let branches = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice);
    let matches = |branch: &&Value| branch.as_object().is_none_or(|it| fits(value, it).is_ok());
    let wrong = |message: &str| Err((String::new(), message.to_owned()));
    for branch in branches("allOf").into_iter().flatten().filter_map(Value::as_object) {
        fits(value, branch)?;
    }
    if branches("anyOf").is_some_and(|all| !all.iter().any(|it| matches(&it))) {
        return wrong("must validate at least one schema (anyOf)");
    }
    if branches("oneOf").is_some_and(|all| all.iter().filter(matches).count() != 1) {
        return wrong("must validate one and only one schema (oneOf)");
    }
    if schema.get("not").is_some_and(|branch| matches(&branch)) {
        return wrong("must not validate the schema (not)");
    }
    Ok(())
}

/// Checks the items of a list, or the fields of an object.
fn children(value: &Value, schema: &SchemaObject) -> Result<(), Misfit> {
    match value {
        Value::Array(list) => {
            for (i, item) in list.iter().enumerate() {
                inside(&format!("[{i}]"), item, schema.get("items"))?;
            }
            duplicate(list, schema)
                .map_or(Ok(()), |(i, message)| Err((format!(" at [{i}]"), message.to_owned())))
        }
        Value::Object(map) => fields(map, schema),
        _ => Ok(()),
    }
}

/// Checks the fields of an object.
fn fields(map: &SchemaObject, schema: &SchemaObject) -> Result<(), Misfit> {
    let properties = schema.get("properties").and_then(Value::as_object);
    // A schema without a type only adds conditions.
    let is_open =
        schema.contains_key("x-kubernetes-preserve-unknown-fields") || !schema.contains_key("type");
    for (name, value) in map {
        let listed = properties.and_then(|properties| properties.get(name));
        let known = listed.or(schema.get("additionalProperties"));
        // The API server refuses a default with fields that it would prune.
        if known.is_none() && !is_open {
            let message = format!("has a field `{name}` that is not in the schema");
            return Err((String::new(), message));
        }
        inside(&format!(".{name}"), value, known)?;
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if name.as_str().is_some_and(|name| !map.contains_key(name)) {
            return Err((String::new(), format!("lacks the required field {name}")));
        }
    }
    Ok(())
}

/// Checks a part of a value, a step below.
fn inside(step: &str, value: &Value, schema: Option<&Value>) -> Result<(), Misfit> {
    let Some(Value::Object(schema)) = schema else { return Ok(()) };
    fits(value, schema).map_err(|(place, message)| {
        let place = place.strip_prefix(" at ").unwrap_or(&place);
        (format!(" at {step}{place}"), message)
    })
}
