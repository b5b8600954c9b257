//! A strict JSON decoder, which accepts no member twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A value without repeated members.
pub(super) struct Strict(pub(super) Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
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

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("no number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            read.push(item);
        }
        Ok(read.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some((name, Strict(value))) = members.next_entry::<String, Strict>()? {
            if read.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands there twice"));
            }
        }
        Ok(read.into())
    }
}

/// Removes the value at `path`, in each element of lists; returns whether any value was there.
pub(super) fn remove(value: &mut Value, path: &[String]) -> bool {
    match (value, path) {
        (Value::Array(items), _) => {
            items.iter_mut().fold(false, |was_there, item| remove(item, path) | was_there)
        }
        (Value::Object(map), [last]) => map.remove(last).is_some(),
        (Value::Object(map), [first, rest @ ..]) => {
            map.get_mut(first).is_some_and(|inner| remove(inner, rest))
        }
        _ => false,
    }
}

/// The texts and words at `path`.
pub(super) fn texts_at(value: &Value, path: &[&str], found: &mut Vec<String>) {
    match (value, path) {
        (Value::Array(items), _) => items.iter().for_each(|item| texts_at(item, path, found)),
        (Value::Object(map), [first, rest @ ..]) => {
            map.get(*first).iter().for_each(|inner| texts_at(inner, rest, found));
        }
        (Value::String(text), []) => found.push(text.clone()),
        (Value::Bool(_), []) => found.push(value.to_string()),
        _ => {}
    }
}
