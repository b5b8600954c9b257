//! JSON bodies, with the fields that they have twice.

use std::cell::RefCell;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::go;
use crate::verbs::decode::Body;

/// Parses JSON. Fields that appear twice are noted; the last counts.
pub(super) fn parse(bytes: &[u8]) -> Result<Body, String> {
    if bytes.is_empty() {
        return Err("unexpected end of JSON input".to_owned());
    }
    let found = RefCell::new(Vec::new());
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let parsed =
        AnyJson { place: &JsonPosition::Root, duplicates: &found }.deserialize(&mut reader);
    // Trailing text after the value is an error too.
    let value = parsed.and_then(|value| reader.end().map(|()| value));
    match value {
        Ok(value) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            Ok(Body { value, duplicates: found.into_inner(), text, ..Body::default() })
        }
        Err(error) => Err(go::json_error(&error, bytes)),
    }
}

/// Most repeated fields that are noted; upstream's limit.
const MOST_DUPLICATES: usize = 100;
/// Longest path of a noted field, in bytes.
const LONGEST_PATH: usize = 1024;

/// A position in a document. Positions refer to the positions above and become text only where a
/// field is repeated: a text for each would be quadratic in memory.
enum JsonPosition<'a> {
    /// The document.
    Root,
    /// A field of an object.
    Field(&'a JsonPosition<'a>, &'a str),
    /// An item of a list.
    Item(&'a JsonPosition<'a>, usize),
}

impl JsonPosition<'_> {
    /// Returns the text of the position, cut at [`LONGEST_PATH`].
    fn text(&self) -> String {
        let mut text = match self {
            Self::Root => String::new(),
            Self::Field(JsonPosition::Root, name) => name.chars().take(LONGEST_PATH).collect(),
            Self::Field(above, name) => {
                let name: String = name.chars().take(LONGEST_PATH).collect();
                format!("{}.{name}", above.text())
            }
            Self::Item(above, index) => format!("{}[{index}]", above.text()),
        };
        let end = (0..=LONGEST_PATH.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text
    }
}

/// Deserializer of any JSON value that notes repeated fields with their paths.
struct AnyJson<'a> {
    place: &'a JsonPosition<'a>,
    duplicates: &'a RefCell<Vec<String>>,
}

impl<'a> AnyJson<'a> {
    /// Returns a deserializer for a value below this one.
    fn inner<'b>(&self, place: &'b JsonPosition<'b>) -> AnyJson<'b>
    where
        'a: 'b,
    {
        AnyJson { place, duplicates: self.duplicates }
    }
}

impl<'de> DeserializeSeed<'de> for AnyJson<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AnyJson<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
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
        // JSON has no NaN and no infinity.
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

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(item) =
            items.next_element_seed(self.inner(&JsonPosition::Item(self.place, out.len())))?
        {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let place = JsonPosition::Field(self.place, &key);
            let value = fields.next_value_seed(self.inner(&place))?;
            let mut found = self.duplicates.borrow_mut();
            if out.contains_key(&key) && found.len() < MOST_DUPLICATES {
                found.push(place.text());
            }
            drop(found);
            out.insert(key, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fields_are_noted_and_the_last_one_counts() {
        let body = parse(br#"{"spec":{"a":1,"a":2},"list":[{"x":1,"x":1}]}"#).unwrap();
        assert_eq!(body.value["spec"]["a"], 2);
        assert_eq!(body.duplicates, ["spec.a", "list[0].x"]);
    }

    #[test]
    fn few_repeated_fields_are_noted_with_short_paths() {
        let fields = ["\"a\":1"; 1000].join(",");
        let text = format!("{{\"{}\":{{{fields}}}}}", "é".repeat(5000));
        let body = parse(text.as_bytes()).unwrap();
        assert_eq!(body.duplicates.len(), MOST_DUPLICATES);
        assert!(body.duplicates.iter().all(|path| path.len() <= LONGEST_PATH));
    }
}
