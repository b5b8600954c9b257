//! Says why JSON does not decode into a type, and no value of it.
//!
//! serde quotes what it stumbles over (`invalid type: string "…"`, `unknown variant`, `unknown field`), and
//! types put values into texts of their own (`cannot parse "…" as a time`). What people wrote into an object
//! may be a password in the wrong place, and logs, Events and debug pages have other readers than
//! the object. So what failed is decoded once more, with an error type that is told the parts and
//! keeps those that come from the type: the path, the kind of value that stands there, and what the
//! type expects. Names of unknown fields and variants are data, and so are the keys of maps (`*` in a
//! path), since serde does not tell a misspelt name from a value. Texts of a type's own are left out:
//! nothing says which part of them is a value.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use super::times;

/// `serde_json`'s own way to ask for the text of a value, which is not there any more.
const PRIVATE: &str = "$serde_json::private";

/// Why something does not decode. Its texts name no value.
pub(crate) struct Undecodable {
    text: String,
}

impl Undecodable {
    /// Of what is not known any more: where it failed, and for what is no JSON why.
    pub(crate) fn of(error: &serde_json::Error) -> Self {
        let text = if error.is_data() {
            let (line, column) = (error.line(), error.column());
            format!("a value at line {line}, column {column} is not as its type wants it")
        } else {
            error.to_string()
        };
        Self { text }
    }

    /// Of `bytes`, which gave `error` when they were decoded into a `T`.
    pub(crate) fn explain<T: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Self {
        // Whatever the category: serde_json counts a key that is no number among errors of syntax.
        let value = serde_json::from_slice(bytes).ok();
        let told = value.and_then(|mut value| {
            bring_near(&mut value);
            fault::<T>(&value)
        });
        told.unwrap_or_else(|| Self::of(error))
    }

    /// Of `value`, which gave `error` when it was decoded into a `T`.
    pub(crate) fn explain_value<T: DeserializeOwned>(
        value: &Value,
        error: &serde_json::Error,
    ) -> Self {
        fault::<T>(value).unwrap_or_else(|| Self::of(error))
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Undecodable {}

/// Times that were too late to be held were not what failed.
fn bring_near(value: &mut Value) {
    match value {
        Value::String(text) => times::near(text).into_iter().for_each(|near| *text = near),
        Value::Array(items) => items.iter_mut().for_each(bring_near),
        Value::Object(members) => members.values_mut().for_each(bring_near),
        _ => {}
    }
}

/// What is wrong with `value` as a `T`; `None` when nothing is found, or only what cannot be told.
fn fault<T: DeserializeOwned>(value: &Value) -> Option<Undecodable> {
    // Code of the type runs, a second time.
    let decoded = catch_unwind(AssertUnwindSafe(|| T::deserialize(Node::of(value)).err()));
    let Fault { mut path, reason } = decoded.ok()??;
    path.reverse();
    let reason = reason?;
    let path = path.concat();
    let text = if path.is_empty() { reason } else { format!("{path}: {reason}") };
    Some(Undecodable { text })
}

/// The error of the second try.
#[derive(Debug)]
struct Fault {
    /// From the value up.
    path: Vec<String>,
    /// `None` when it is the second try's own.
    reason: Option<String>,
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self { path: Vec::new(), reason: Some(reason.into()) }
    }

    fn below(mut self, name: impl Into<String>) -> Self {
        self.path.push(name.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_deref().unwrap_or_default())
    }
}

impl std::error::Error for Fault {}

fn kind_of(unexpected: &Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "integer",
        Unexpected::Float(_) => "number",
        Unexpected::Char(_) | Unexpected::Str(_) => "string",
        Unexpected::Bytes(_) => "bytes",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "array",
        Unexpected::Map => "object",
        _ => "another value",
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [] => "there are none".to_owned(),
        names => format!("expected one of `{}`", names.join("`, `")),
    }
}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::new("a value that its type refuses")
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid type: {}, expected {expected}", kind_of(&unexpected)))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid value: {}, expected {expected}", kind_of(&unexpected)))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid length, expected {expected}"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown variant, {}", one_of(expected)))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown field, {}", one_of(expected)))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("duplicate field `{field}`"))
    }
}

/// A value to be decoded.
struct Node<'de> {
    value: &'de Value,
}

impl<'de> Node<'de> {
    fn of(value: &'de Value) -> Self {
        Self { value }
    }

    fn members(members: &'de Map<String, Value>) -> Members<'de> {
        Members { left: members.iter(), next: None }
    }
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut items = Items { left: items.iter(), at: 0 };
                let value = visitor.visit_seq(&mut items)?;
                match items.left.next() {
                    None => Ok(value),
                    Some(_) => Err(Fault::new("invalid length, expected fewer items")),
                }
            }
            Value::Object(members) => visitor.visit_map(Self::members(members)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name.starts_with(PRIVATE) {
            return Err(Fault { path: Vec::new(), reason: None });
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match self.value {
            Value::String(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Value::Object(members) if members.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Self::members(members)))
            }
            Value::Object(_) => Err(Fault::new("invalid value: object, expected one member")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct Items<'de> {
    left: std::slice::Iter<'de, Value>,
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some(value) = self.left.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        seed.deserialize(Node::of(value)).map(Some).map_err(|fault| fault.below(format!("[{at}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

struct Members<'de> {
    left: serde_json::map::Iter<'de>,
    /// The name of the value that is next, when the type knows it.
    next: Option<(Option<&'de str>, &'de Value)>,
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((name, value)) = self.left.next() else { return Ok(None) };
        let is_field = Cell::new(false);
        let key = seed.deserialize(Name(name, &is_field)).map(Some);
        self.next = Some((Some(&**name).filter(|_| is_field.get()), value));
        // A field's name is the struct's matter, which the path ends at.
        key.map_err(|fault| if is_field.get() { fault } else { fault.below(".*") })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some((name, value)) = self.next.take() else {
            return Err(Fault { path: Vec::new(), reason: None });
        };
        seed.deserialize(Node::of(value))
            .map_err(|fault| fault.below(format!(".{}", name.unwrap_or("*"))))
    }
}

/// `serde_json` takes names of members for numbers where a map wants them.
macro_rules! as_number {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match (self.0.parse(), self.0.parse()) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_borrowed_str(self.0),
            }
        })*
    };
}

/// The name of a member, which may be read as a number. It is a field's or variant's when it is asked for
/// as an identifier: maps ask for their keys as what they are.
struct Name<'de, 'a>(&'de str, &'a Cell<bool>);

impl<'de> Deserializer<'de> for Name<'de, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.1.set(true);
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            other => visitor.visit_borrowed_str(other),
        }
    }

    as_number!(
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    );

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        ignored_any
    }
}

#[cfg(test)]
mod tests;
