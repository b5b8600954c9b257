//! Texts of Go's standard library that kube-apiserver passes on to clients.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Returns the name of a value's type in decoding errors.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns `json: cannot unmarshal number into Go struct field X of type Y`.
pub(crate) fn mismatch(value: &Value, field: &str, wanted: &str) -> String {
    let found = type_name(value);
    format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
}

/// Returns the decoder's error for a body that is no object.
pub(crate) fn not_an_object(value: &Value) -> String {
    let found = type_name(value);
    let tag = |name: &str, key: &str| format!("{name} string \"json:\\\"{key},omitempty\\\"\"");
    let fields = [tag("APIVersion", "apiVersion"), tag("Kind", "kind")].join("; ");
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ {fields} }}"
    )
}

/// Returns a text in double quotes with Go's escapes.
pub(crate) fn quote(text: &str) -> String {
    let inner: String = text.chars().map(|c| quoted(c, '"')).collect();
    format!("\"{inner}\"")
}

/// Returns a character between quotation marks with Go's escapes.
fn quoted(c: char, mark: char) -> String {
    match c {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if c == mark => format!("\\{c}"),
        c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    }
}

/// Returns a parse error in Go's words, as far as the causes can be distinguished.
pub(crate) fn json_error(error: &serde_json::Error, bytes: &[u8]) -> String {
    if error.is_eof() || bytes.is_empty() {
        return "unexpected end of JSON input".to_owned();
    }
    // serde_json reports line and column, Go the character: the byte offset is computed from both.
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let start: usize = lines.take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let at = (start + error.column()).saturating_sub(1);
    match bytes.get(at) {
        Some(byte) => {
            let shown = quoted(char::from(*byte), '\'');
            format!("invalid character '{shown}' {}", place(&bytes[..at]))
        }
        None => error.to_string(),
    }
}

/// Returns the state of the parser before an unexpected character, in Go's words.
fn place(before: &[u8]) -> String {
    let letters = before.iter().rev().take_while(|byte| byte.is_ascii_lowercase()).count();
    let word = String::from_utf8_lossy(&before[before.len() - letters..]).into_owned();
    for literal in ["true", "false", "null"] {
        let rest = literal.strip_prefix(word.as_str()).filter(|_| !word.is_empty());
        if let Some(next) = rest.and_then(|rest| rest.chars().next()) {
            return format!("in literal {literal} (expecting {next:?})");
        }
    }
    if let Some(text) = number(before).filter(|_| open(before) != Some(b'"')) {
        return text.to_owned();
    }
    let last = before.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    let place = match last {
        Some(_) if open(before) == Some(b'"') => "in string literal",
        None | Some(b':' | b'[') => "looking for beginning of value",
        Some(b'{' | b',') => "looking for beginning of object key string",
        Some(b'"') if is_key(before) => "after object key",
        Some(_) if open(before) == Some(b'{') => "after object key:value pair",
        Some(_) if open(before) == Some(b'[') => "after array element",
        Some(_) => "after top-level value",
    };
    place.to_owned()
}

/// Returns the place within a number that lacks digits, in Go's words.
fn number(before: &[u8]) -> Option<&'static str> {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let mut back = before.iter().rev();
    match back.next()? {
        b'-' | b'+' if matches!(back.next(), Some(b'e' | b'E')) && digit(back.next()) => {
            Some("in exponent of numeric literal")
        }
        b'-' => Some("in numeric literal"),
        b'.' if digit(back.next()) => Some("after decimal point in numeric literal"),
        b'e' | b'E' if digit(back.next()) => Some("in exponent of numeric literal"),
        _ => None,
    }
}

/// Returns the innermost bracket that is still open, or the quotation mark of a text that is.
fn open(before: &[u8]) -> Option<u8> {
    let mut stack = Vec::new();
    let mut text = false;
    let mut escaped = false;
    for byte in before {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'{' | b'[' if !text => stack.push(*byte),
            b'}' | b']' if !text => drop(stack.pop()),
            _ => {}
        }
    }
    if text { Some(b'"') } else { stack.pop() }
}

/// Whether a text that ends here stands in the position of an object key.
fn is_key(before: &[u8]) -> bool {
    let trimmed = before.trim_ascii_end();
    let inner = trimmed.get(..trimmed.len().saturating_sub(1)).unwrap_or_default();
    let start = inner.iter().rposition(|byte| *byte == b'"').unwrap_or(0);
    let earlier = inner.get(..start).unwrap_or_default().trim_ascii_end();
    matches!(earlier.last(), Some(b'{' | b',')) && open(earlier) == Some(b'{')
}

/// Returns complaints about fields in the order in which the fields stand in a text.
pub(crate) fn in_order(text: &str, complaints: Vec<String>) -> Vec<String> {
    let mut wanted: BTreeSet<String> = complaints.iter().cloned().collect();
    let found = RefCell::new(Vec::new());
    let fields = FieldSearch { path: String::new(), wanted: &wanted, found: &found };
    let mut reader = serde_json::Deserializer::from_str(text);
    // The text was read before; if not, the order stays.
    drop(fields.deserialize(&mut reader));
    let mut ordered = found.into_inner();
    ordered.retain(|complaint| wanted.remove(complaint));
    ordered.extend(complaints.into_iter().filter(|complaint| wanted.contains(complaint)));
    ordered
}

/// A walk over a text that finds the fields of complaints.
struct FieldSearch<'a> {
    path: String,
    wanted: &'a BTreeSet<String>,
    found: &'a RefCell<Vec<String>>,
}

impl FieldSearch<'_> {
    /// Returns the walk over a value below this one.
    fn below(&self, path: String) -> FieldSearch<'_> {
        FieldSearch { path, wanted: self.wanted, found: self.found }
    }

    /// Notes a complaint, if wanted.
    fn note(&self, what: &str, path: &str) {
        let complaint = format!("{what} field {path:?}");
        if self.wanted.contains(&complaint) {
            self.found.borrow_mut().push(complaint);
        }
    }
}

impl<'de> DeserializeSeed<'de> for FieldSearch<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FieldSearch<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        while items.next_element_seed(self.below(format!("{}[{index}]", self.path)))?.is_some() {
            index += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            let path =
                if self.path.is_empty() { key.clone() } else { format!("{}.{key}", self.path) };
            self.note(if seen.insert(key) { "unknown" } else { "duplicate" }, &path);
            fields.next_value_seed(self.below(path))?;
        }
        Ok(())
    }
}

/// Turns floats that are whole and fit into 64 bits without a sign into integers, as Go prints
/// them.
pub(crate) fn print_large(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().filter(|float| float.fract() == 0.0);
            let range = 9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0;
            if let Some(float) = float.filter(|float| range.contains(float)) {
                *value = (float as u64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(print_large),
        Value::Object(fields) => fields.values_mut().for_each(print_large),
        _ => {}
    }
}

/// Turns integers that Go's decoder reads as `float64`, since they do not fit into 64 bits with a
/// sign.
pub(crate) fn large_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            *value = number.as_f64().map_or(Value::Null, Value::from);
        }
        Value::Array(items) => items.iter_mut().for_each(large_numbers),
        Value::Object(fields) => fields.values_mut().for_each(large_numbers),
        _ => {}
    }
}

/// Turns numbers without a fraction into integers: Go's encoder writes a `float64` of 20 as `20`,
/// and `20.0` of a request never comes back as sent.
pub(crate) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0) else { return };
            // From 10^21 on Go writes an exponent; integers beyond 64 bits stay as they are.
            let most = 9_223_372_036_854_775_808.0;
            if (-most..most).contains(&float) {
                *value = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

// DESIGN.md, 324: Equal numbers of two types are two items of a set
/// Like [`whole_numbers`], but leaves `1.0` beside `1` in a list, and among the values of a field
/// in the items of a list: as items or keys of sets Go takes them for two values.
pub(crate) fn whole_numbers_but_equal(value: &mut Value) {
    match value {
        Value::Array(items) => {
            let integers = integers(items);
            let is_twin = |field: &str, value: &Value| {
                let Some(held) = integers.get(field).filter(|_| value.is_f64()) else {
                    return false;
                };
                let mut whole = value.clone();
                whole_numbers(&mut whole);
                whole.as_i64().is_some_and(|integer| held.contains(&integer))
            };
            for item in items {
                match item {
                    Value::Object(fields) => {
                        let others =
                            fields.iter_mut().filter(|(name, value)| !is_twin(name, value));
                        others.for_each(|(_, value)| whole_numbers_but_equal(value));
                    }
                    item if is_twin("", item) => {}
                    item => whole_numbers_but_equal(item),
                }
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers_but_equal),
        number => whole_numbers(number),
    }
}

/// Returns the integers among the items of a list, by an empty name, and among the fields of the
/// items; none for a list without floats.
fn integers(items: &[Value]) -> BTreeMap<String, BTreeSet<i64>> {
    let mut found: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let has_float = |item: &Value| match item {
        Value::Object(fields) => fields.values().any(Value::is_f64),
        item => item.is_f64(),
    };
    if !items.iter().any(has_float) {
        return found;
    }
    for item in items {
        let fields = item.as_object().into_iter().flatten();
        let named = fields.map(|(name, value)| (name.as_str(), value));
        for (name, value) in named.chain([("", item)]) {
            if let Some(integer) = value.as_i64() {
                found.entry(name.to_owned()).or_default().insert(integer);
            }
        }
    }
    found
}

/// Returns the reason why a text is no base64, in the words of Go's decoder.
pub(crate) fn base64_fault(text: &str) -> Option<String> {
    // Go skips line breaks.
    let bytes: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = bytes.iter().take_while(|byte| is_digit(byte)).count();
    let rest = &bytes[digits..];
    let at = match (digits % 4, rest) {
        (0, []) | (2, [b'=', b'=']) | (3, [b'=']) => return None,
        // Padding is missing: the error is at the end.
        (_, []) => bytes.len() - digits % 4,
        (2, [b'=']) => bytes.len(),
        (2, [b'=', other, ..]) if *other != b'=' => digits + 1,
        (2, [b'=', b'=', ..]) => digits + 2,
        (3, [b'=', ..]) => digits + 1,
        _ => digits,
    };
    Some(format!("illegal base64 data at input byte {at}"))
}

/// Returns the reason why a text is no quantity, in the words of Go's parser.
pub(crate) fn quantity_fault(text: &str) -> Option<&'static str> {
    const FORM: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = |text: &str, is_part: fn(char) -> bool| {
        text.find(|c: char| !is_part(c)).unwrap_or(text.len())
    };
    let (whole, rest) = signed.split_at(end(signed, |c| c.is_ascii_digit()));
    let fraction =
        rest.strip_prefix('.').map(|rest| rest.split_at(end(rest, |c| c.is_ascii_digit())));
    let (fraction, suffix) = fraction.unwrap_or(("", rest));
    let (letters, power) = suffix.split_at(end(suffix, |c| "eEinumkKMGTP".contains(c)));
    let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
    if text.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return Some(FORM);
    }
    if whole.is_empty() && fraction.is_empty() {
        return Some("unable to parse numeric part of quantity");
    }
    let is_exponent = matches!(letters, "e" | "E") && power.parse::<i32>().is_ok();
    let is_suffix = power.is_empty()
        && matches!(
            letters,
            "" | "n"
                | "u"
                | "m"
                | "k"
                | "M"
                | "G"
                | "T"
                | "P"
                | "E"
                | "Ki"
                | "Mi"
                | "Gi"
                | "Ti"
                | "Pi"
                | "Ei"
        );
    (!is_exponent && !is_suffix).then_some("unable to parse quantity's suffix")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_json_is_told_in_gos_words() {
        for (text, error) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":", "unexpected end of JSON input"),
            ("hello", "invalid character 'h' looking for beginning of value"),
            ("{\"a\":tru}", "invalid character '}' in literal true (expecting 'e')"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
        ] {
            let parsed = serde_json::from_str::<Value>(text).unwrap_err();
            assert_eq!(json_error(&parsed, text.as_bytes()), error, "{text}");
        }
    }

    #[test]
    fn a_float_beside_the_equal_integer_stays_one() {
        for (sent, kept) in [
            ("[1.0,2.0,2.5]", "[1,2,2.5]"),
            ("[1,1.0,2.0]", "[1,1.0,2]"),
            (
                r#"{"a":[{"k":1.0,"v":3.0},{"k":1,"v":2}]}"#,
                r#"{"a":[{"k":1.0,"v":3},{"k":1,"v":2}]}"#,
            ),
            (r#"[{"k":1.0},{"v":1}]"#, r#"[{"k":1},{"v":1}]"#),
            ("[[1.0],[1]]", "[[1],[1]]"),
        ] {
            let mut value = serde_json::from_str(sent).unwrap();
            whole_numbers_but_equal(&mut value);
            assert_eq!(value.to_string(), kept, "{sent}");
        }
    }

    #[test]
    fn quotes_escape_what_go_escapes() {
        assert_eq!(quote("a\u{7}\"b"), "\"a\\a\\\"b\"");
    }

    #[test]
    fn quantities_are_read_as_go_reads_them() {
        for text in ["0", "1", "-1.5", "+2", ".5", "1.", "500m", "1Gi", "1e3", "1E-3", "12E", "1n"]
        {
            assert_eq!(quantity_fault(text), None, "{text}");
        }
        for text in ["", "a", "1 ", "1Gi ", "1e3x", "1..2", "0x1"] {
            assert!(
                quantity_fault(text).is_some_and(|why| why.starts_with("quantities must")),
                "{text}"
            );
        }
        assert_eq!(quantity_fault("k"), Some("unable to parse numeric part of quantity"));
        assert_eq!(quantity_fault("1e"), Some("unable to parse quantity's suffix"));
        assert_eq!(quantity_fault("1K"), Some("unable to parse quantity's suffix"));
    }
}
