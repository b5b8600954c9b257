//! YAML bodies, read as Go's YAML 1.1 reads them.

use std::cell::RefCell;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::http::json;
use crate::verbs::decode::Body;

/// Most repeated keys that are reported.
const MOST_REPEATED: usize = 100;

/// Parses the first document; of repeated keys the last counts.
///
/// # Errors
/// The reason in Go's words, where Go's words are known.
pub(super) fn parse(bytes: &[u8]) -> Result<Body, String> {
    // JSON is YAML, and most bodies are JSON, whose parser also notes repeated fields.
    let braced = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if braced
        && let Ok(body) = json::parse(bytes)
        // Reported with lines, as in other documents.
        && body.duplicates.is_empty()
    {
        return Ok(body);
    }
    let text = std::str::from_utf8(bytes).map_err(|why| why.to_string())?;
    if !braced && text.trim_start_matches(['\n', ' ']).starts_with('\t') {
        return Err("found character that cannot start any token".to_owned());
    }
    let options =
        serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let document = first(text);
    let found = RefCell::default();
    let parsed =
        serde_saphyr::with_deserializer_from_str_with_options(document, options, |reader| {
            AnyYaml(&found).deserialize(reader)
        });
    let value = parsed.map_err(|why| reason(&why.to_string(), document))?;
    // The start of a body that is no object is shown as sent.
    let text = if value.is_object() { String::new() } else { text.to_owned() };
    Ok(Body { value, repeated: found.into_inner(), duplicates: Vec::new(), text })
}

/// Returns the first document of a text: upstream reads no further.
fn first(text: &str) -> &str {
    let mut begun = false;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let is_mark = bare == "---" || bare.starts_with("--- ");
        if begun && (is_mark || bare == "...") {
            return &text[..end];
        }
        // Comments and empty lines may stand before the first mark.
        begun |= is_mark || !(bare.is_empty() || bare.starts_with('#') || bare.starts_with('%'));
        end += line.len();
    }
    text
}

/// Returns the reason of a failure in Go's words.
fn reason(why: &str, text: &str) -> String {
    let line = why.lines().next().unwrap_or_default();
    let message = line.strip_prefix("error: ").unwrap_or(line);
    if message.contains("mapping values are not allowed") {
        return "mapping values are not allowed in this context".to_owned();
    }
    if message.contains("unclosed bracket") {
        let lines = text.lines().count().max(1);
        return format!("line {lines}: did not find expected node content");
    }
    message.to_owned()
}

/// Deserializer of any YAML value, which notes the repeated keys.
#[derive(Clone, Copy)]
struct AnyYaml<'a>(&'a RefCell<Vec<String>>);

/// A key with the place in the text.
struct YamlKey(Value);

impl<'de> serde::Deserialize<'de> for YamlKey {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        AnyYaml(&RefCell::default()).deserialize(reader).map(Self)
    }
}

impl YamlKey {
    /// Returns the key as a text: Go turns keys of other types into texts.
    fn text(self) -> String {
        match self.0 {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }
}

impl<'de> DeserializeSeed<'de> for AnyYaml<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyYaml<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = fields.next_key::<serde_saphyr::Spanned<YamlKey>>()? {
            let line = key.referenced.line();
            let value = fields.next_value_seed(self)?;
            let shown = key.value.0.to_string();
            let mut found = self.0.borrow_mut();
            if out.insert(key.value.text(), value).is_some() && found.len() < MOST_REPEATED {
                found.push(format!("line {line}: key {shown} already set in map"));
            }
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_texts_and_the_first_document_counts() {
        let read = |text: &str| parse(text.as_bytes()).unwrap().value;
        assert_eq!(read("{n: x, y: z, \"n\": w}"), json!({"false": "x", "true": "z", "n": "w"}));
        assert_eq!(read("a: 1\n---\nb: 2\n"), json!({"a": 1}));
        assert_eq!(read("# first\n---\na: 1\n...\nb: 2\n"), json!({"a": 1}));
        assert_eq!(read("1: a"), json!({"1": "a"}));
    }

    #[test]
    fn repeated_keys_are_told_with_their_lines() {
        let repeated = |text: &str| parse(text.as_bytes()).unwrap().repeated;
        assert_eq!(repeated("a: 1\nb: {c: 1}\n"), [""; 0]);
        assert_eq!(
            repeated("a: 1\na: {b: 1, b: 2}\n"),
            ["line 2: key \"b\" already set in map", "line 2: key \"a\" already set in map",]
        );
        // JSON is reported like YAML.
        assert_eq!(repeated("{\"a\": 1,\n\"a\": 2}"), ["line 2: key \"a\" already set in map"]);
    }

    #[test]
    fn faults_are_told_in_gos_words() {
        let why = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert_eq!(why("a: b: c"), "mapping values are not allowed in this context");
        assert_eq!(why("{"), "line 1: did not find expected node content");
    }
}
