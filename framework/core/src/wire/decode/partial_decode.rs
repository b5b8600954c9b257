//! Decoding of a type that reads few members of a large object; the scanner skips the others.
//!
//! A projection reads six fields of a Pod. `serde_json` tokenizes all the others, which costs three
//! times as much as finding their ends. So objects are scanned here while the type looks for
//! members in them, and each wanted value is passed to `serde_json`. Skipped values are checked for
//! brackets and quotes only.
//!
//! Not included: error texts. Input that does not decode is decoded again by `serde_json`, which
//! reports the reason.

use std::cell::Cell;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    Visitor,
};

use crate::wire::scanner::members::Cursor;
use crate::wire::scanner::scan::skip_space;

type PartialDecodeError = serde_json::Error;

/// Nested objects that are scanned here; `serde_json` limits the depth below.
const DEPTH: u8 = 16;

/// Decodes a `T`; `None` when that fails, or when the text is unusual (escapes in names).
pub(crate) fn decoded<T: DeserializeOwned>(text: &str) -> Option<T> {
    let odd = &Cell::new(false);
    let start = skip_space(text.as_bytes(), 0);
    let mut value = PartialValue { text, odd, start, end: None, depth: DEPTH };
    let decoded = T::deserialize(&mut value).ok()?;
    let end = value.end()?;
    // The type may have tolerated an error of this deserializer that `serde_json` would not have
    // raised.
    let is_whole = !odd.get() && skip_space(text.as_bytes(), end) == text.len();
    is_whole.then_some(decoded)
}

/// A value that begins at `start`; the end is known once the value was read or skipped.
struct PartialValue<'de> {
    /// The text that contains the value.
    text: &'de str,
    /// Set when input is given up that `serde_json` may be able to read.
    odd: &'de Cell<bool>,
    /// Position of the first byte.
    start: usize,
    /// Position behind the last byte; `None` until the end is known.
    end: Option<usize>,
    /// Levels of objects that may still be entered; deeper objects are left to `serde_json`.
    depth: u8,
}

impl<'de> PartialValue<'de> {
    /// Returns the end of the value; scans for the end if the value was not read yet.
    fn end(&mut self) -> Option<usize> {
        if self.end.is_none() {
            self.end = crate::wire::scanner::scan::value_end(self.text.as_bytes(), self.start).ok();
        }
        self.end
    }

    /// Whether the value is an object within the limit of depth.
    fn is_object(&self) -> bool {
        self.depth > 0 && self.text.as_bytes().get(self.start) == Some(&b'{')
    }

    /// Passes the members of an object to the visitor.
    fn members<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, PartialDecodeError> {
        let odd = self.odd;
        let rest = self.text.get(self.start..).ok_or_else(|| unusual(odd))?;
        let cursor = Cursor::open(rest.as_bytes()).map_err(|_| unusual(odd))?;
        // Above zero: `is_object` has checked the depth.
        let depth = self.depth - 1;
        let mut members = TextMembers { text: rest, odd, cursor, next: None, depth };
        let read = visitor.visit_map(&mut members)?;
        // The visitor must have read all members.
        let more = members.cursor.name().map_err(|_| unusual(odd))?.is_some();
        if more || members.next.is_some() {
            return Err(unusual(odd));
        }
        self.end = Some(self.start + members.cursor.close() + 1);
        Ok(read)
    }

    /// Decodes the value with `serde_json`.
    fn read<T>(
        &mut self,
        read: impl FnOnce(
            &mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
        ) -> Result<T, PartialDecodeError>,
    ) -> Result<T, PartialDecodeError> {
        let odd = self.odd;
        let end = self.end().ok_or_else(|| unusual(odd))?;
        let text = self.text.get(self.start..end).ok_or_else(|| unusual(odd))?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = read(&mut deserializer)?;
        deserializer.end()?;
        Ok(value)
    }
}

/// An error that also marks the text as a case for `serde_json`.
fn unusual(odd: &Cell<bool>) -> PartialDecodeError {
    odd.set(true);
    PartialDecodeError::custom("unusual JSON")
}

/// Passes a value to the same method of `serde_json`.
macro_rules! by_serde_json {
    ($($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, PartialDecodeError> {
            self.read(|deserializer| deserializer.$method($($name,)* visitor))
        })*
    };
}

impl<'de> Deserializer<'de> for &mut PartialValue<'de> {
    type Error = PartialDecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PartialDecodeError> {
        if self.is_object() {
            return self.members(visitor);
        }
        self.read(|deserializer| deserializer.deserialize_any(visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PartialDecodeError> {
        if self.is_object() {
            return self.members(visitor);
        }
        self.read(|deserializer| deserializer.deserialize_map(visitor))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, PartialDecodeError> {
        // Only the end is searched for: that makes skipping cheap.
        let odd = self.odd;
        self.end().ok_or_else(|| unusual(odd))?;
        visitor.visit_unit()
    }

    by_serde_json! {
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_str()
        deserialize_string()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_option()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
        deserialize_identifier()
    }
}

/// The members of an object.
struct TextMembers<'de> {
    /// The text from the opening brace on.
    text: &'de str,
    /// As in [`PartialValue`].
    odd: &'de Cell<bool>,
    /// Position between the members.
    cursor: Cursor<'de>,
    /// Start of the value whose name was read last.
    next: Option<usize>,
    /// Levels that the members' values may still have.
    depth: u8,
}

impl<'de> MapAccess<'de> for &mut TextMembers<'de> {
    type Error = PartialDecodeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, PartialDecodeError> {
        let odd = self.odd;
        let Some(name) = self.cursor.name().map_err(|_| unusual(odd))? else { return Ok(None) };
        self.next = Some(name.value);
        let start = name.start + 1;
        let name = self.text.get(start..start + name.name.len()).ok_or_else(|| unusual(odd))?;
        // Names with escapes are left to serde_json; control characters are no JSON.
        if name.bytes().any(|byte| byte == b'\\' || byte < b' ') {
            return Err(unusual(odd));
        }
        let name: BorrowedStrDeserializer<'de, PartialDecodeError> =
            BorrowedStrDeserializer::new(name);
        // So are names that are read as numbers.
        seed.deserialize(name.into_deserializer()).map(Some).inspect_err(|_| odd.set(true))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, PartialDecodeError> {
        let odd = self.odd;
        let start = self.next.take().ok_or_else(|| unusual(odd))?;
        let mut value = PartialValue { text: self.text, odd, start, end: None, depth: self.depth };
        let read = seed.deserialize(&mut value)?;
        self.cursor.skip_to(value.end().ok_or_else(|| unusual(odd))?);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde::de::IgnoredAny;
    use serde_json::{Value as Json, json};

    use super::*;

    /// Iterates over the object, and reads `a` and `b`.
    #[derive(Debug, Default, PartialEq)]
    struct Few {
        a: Option<Json>,
        b: Option<BTreeMap<String, Json>>,
    }

    struct Fields;

    impl<'de> Visitor<'de> for Fields {
        type Value = Few;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Few, A::Error> {
            let mut few = Few::default();
            while let Some(name) = map.next_key::<String>()? {
                match name.as_str() {
                    "a" => few.a = map.next_value()?,
                    "b" => few.b = map.next_value()?,
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(few)
        }
    }

    impl<'de> Deserialize<'de> for Few {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Fields)
        }
    }

    fn same(text: &str) {
        let plain = serde_json::from_str::<Few>(text);
        if let Some(partial) = decoded::<Few>(text) {
            assert_eq!(partial, plain.expect(text), "{text}");
        }
    }

    #[test]
    fn members_are_read_and_the_others_skipped() {
        let text =
            r#" {"x":{"y":[1,"}"]},"a":{"c":[1.5,null,"\u00e9"]},"b":{"k":true}, "z":"\\"} "#;
        let few: Few = decoded(text).expect("it decodes");
        assert_eq!(few, serde_json::from_str(text).expect("it is JSON"));
        assert_eq!(few.a, Some(json!({"c": [1.5, null, "é"]})));
    }

    #[test]
    fn what_is_wrong_or_unusual_is_left_to_serde_json() {
        for text in [
            "",
            "null",
            "[]",
            "{",
            r#"{"a":}"#,
            r#"{"a":1}x"#,
            r#"{"b":7}"#,
            r#"{"a":1 "b":{}}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":tru}"#,
            r#"{"a":"x}"#,
            r#"{"a":1,}"#,
        ] {
            assert_eq!(decoded::<Few>(text), None, "{text}");
        }
    }

    /// Treats a value that does not decode as empty.
    struct Lenient<K: Ord>(BTreeMap<K, Json>);

    impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for Lenient<K> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Ok(Self(BTreeMap::deserialize(deserializer).unwrap_or_default()))
        }
    }

    #[test]
    fn a_field_that_puts_up_with_errors_is_left_to_serde_json_when_there_was_one() {
        let numbers: Lenient<u32> = serde_json::from_str(r#"{"1":2}"#).expect("a number");
        assert_eq!(numbers.0[&1], 2);
        assert!(decoded::<Lenient<u32>>(r#"{"1":2}"#).is_none());
        let escaped: Lenient<String> = serde_json::from_str(r#"{"\u0061":2}"#).expect("a name");
        assert_eq!(escaped.0["a"], 2);
        assert!(decoded::<Lenient<String>>(r#"{"\u0061":2}"#).is_none());
        assert!(decoded::<Lenient<String>>(r#"{"a":2}"#).is_some());
    }

    #[test]
    fn nesting_without_end_is_refused() {
        let deep = format!("{{\"a\":{}1{}}}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(decoded::<Few>(&deep), None);
        assert_eq!(decoded::<Json>(&deep), None);
    }

    proptest! {
        #[test]
        fn what_decodes_is_what_serde_json_makes_of_it(
            bytes in prop::collection::vec(prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\"a\":", "\"b\":", "\"c\":", "1", "null",
                "true", "\\", " ", "-2.5e1", "\"é\"", "{\"a\":1}",
            ]), 0..24),
        ) {
            let inner = bytes.concat();
            // Syntax errors in skipped values are not reported.
            if serde_json::from_str::<Json>(&inner).is_ok() {
                same(&inner);
            }
            let text = format!("{{\"c\":0,{inner}}}");
            if serde_json::from_str::<Json>(&text).is_ok() {
                same(&text);
            }
        }
    }
}
