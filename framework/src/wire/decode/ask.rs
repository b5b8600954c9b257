//! A deserializer that learns from a type's own `Deserialize` why a value does not decode
//! (`explain`), and which fields the type reads (`resource::reads`).
//!
//! Both uses share one deserializer, because each type of deserializer is another copy of the code
//! that decodes a kind, in every program that uses it: for a Deployment half a second of the
//! program's build. The parts that differ are in [`Node`] and [`Probe`].

use std::cell::Cell;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::resource::Probe;

/// Prefix of the newtypes by which `serde_json` asks for the text of a value, which does not exist
/// here.
const PRIVATE: &str = "$serde_json::private";

/// The error type, which keeps only the parts that come from the type.
#[derive(Debug, Default)]
pub(crate) struct Fault {
    /// Steps from the value up to the root.
    pub(crate) path: Vec<String>,
    /// `None` when the deserializer itself ended the attempt.
    pub(crate) reason: Option<String>,
    /// The type refuses unknown members, and met one.
    pub(crate) is_unknown_field: bool,
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Adds a step to the path, while the error passes up through the value.
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

/// Names the kind of a value, without the value.
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
        // The text is dropped: it may quote the value.
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
        let reason = format!("unknown field, {}", one_of(expected));
        Self { is_unknown_field: true, ..Self::new(reason) }
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("missing field `{field}`"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("duplicate field `{field}`"))
    }
}

/// A value to be decoded.
#[derive(Clone, Copy)]
pub(crate) struct Node<'de>(pub(crate) &'de Value);

/// The input of a type: a value to decode, or a place on a path to ask about.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'de> {
    Value(Node<'de>),
    Path(Probe<'de>),
}

impl<'de> Node<'de> {
    /// Passes the value to the visitor as the type that it has.
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => Ask::Value(self).list(visitor),
            Value::Object(_) => Ask::Value(self).object(visitor),
        }
    }
}

impl<'de> Ask<'de> {
    /// Passes the members of an object to the visitor.
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let members = match self {
            Self::Value(Node(Value::Object(members))) => {
                Members::All { left: members.iter(), next: None }
            }
            Self::Value(node) => return node.any(visitor),
            Self::Path(probe) => {
                let (step, below) = probe.step()?;
                Members::Step { step: Some(step), below }
            }
        };
        visitor.visit_map(members)
    }

    /// Passes the items of a list to the visitor.
    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let mut items = match self {
            Self::Value(Node(Value::Array(items))) => Items::All { left: items.iter(), at: 0 },
            Self::Value(node) => return node.any(visitor),
            Self::Path(probe) => Items::One(Some(probe.deeper()?)),
        };
        let value = visitor.visit_seq(&mut items)?;
        match items {
            // As in `serde_json`: a tuple has to take all items.
            Items::All { left, .. } if left.len() > 0 => {
                Err(Fault::new("invalid length, expected fewer items"))
            }
            _ => Ok(value),
        }
    }

    /// Returns the same place for an inner type.
    fn deeper(self) -> Result<Self, Fault> {
        match self {
            Self::Value(_) => Ok(self),
            Self::Path(probe) => probe.deeper().map(Self::Path),
        }
    }
}

/// Methods that decode a value as it is, and that end a path with `$at_path`.
macro_rules! ends {
    ($at_path:ident: $($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Fault> {
            match self {
                Self::Value(node) => node.any(visitor),
                Self::Path(probe) => probe.$at_path(),
            }
        })*
    };
}

/// Methods that forward to `$as`.
macro_rules! alike {
    ($as:ident: $($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, Fault> {
            self.$as(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Ask<'de> {
    type Error = Fault;

    ends! { value:
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char() deserialize_str()
        deserialize_string() deserialize_bytes() deserialize_byte_buf() deserialize_identifier()
    }
    ends! { nothing: deserialize_unit() deserialize_unit_struct(_name: &'static str) }
    alike! { list:
        deserialize_seq()
        deserialize_tuple(_len: usize)
        deserialize_tuple_struct(_name: &'static str, _len: usize)
    }
    alike! { object:
        deserialize_map()
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str])
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Value(node) => node.any(visitor),
            Self::Path(probe) => {
                // A type that asks for any value shows its shape only by its `expecting` text.
                let expected: &dyn Expected = &visitor;
                probe.undecided(&expected.to_string())?;
                self.object(visitor)
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Value(_) => visitor.visit_unit(),
            Self::Path(probe) => probe.nothing(),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self {
            Self::Value(Node(Value::Null)) => visitor.visit_none(),
            _ => visitor.visit_some(self.deeper()?),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if matches!(self, Self::Value(_)) && name.starts_with(PRIVATE) {
            // Such types need the text of the value, which a parsed value has lost.
            return Err(Fault::default());
        }
        visitor.visit_newtype_struct(self.deeper()?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let value = match self {
            Self::Value(Node(value)) => value,
            Self::Path(probe) => return probe.variant(),
        };
        match value {
            Value::String(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            // An externally tagged variant: its name is the only member.
            Value::Object(members) if members.len() == 1 => {
                let members = Members::All { left: members.iter(), next: None };
                visitor.visit_enum(MapAccessDeserializer::new(members))
            }
            Value::Object(_) => Err(Fault::new("invalid value: object, expected one member")),
            _ => self.deserialize_any(visitor),
        }
    }
}

/// The items of a list: those of a value, or one for a path.
enum Items<'de> {
    All { left: std::slice::Iter<'de, Value>, at: usize },
    One(Option<Probe<'de>>),
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let (ask, at) = match self {
            Self::All { left, at } => {
                let Some(value) = left.next() else { return Ok(None) };
                *at += 1;
                (Ask::Value(Node(value)), *at - 1)
            }
            Self::One(probe) => {
                let Some(probe) = probe.take() else { return Ok(None) };
                (Ask::Path(probe), 0)
            }
        };
        seed.deserialize(ask).map(Some).map_err(|fault| fault.below(format!("[{at}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        match self {
            Self::All { left, .. } => Some(left.len()),
            Self::One(_) => None,
        }
    }
}

/// The members of an object: those of a value, or the next step of a path and nothing else.
enum Members<'de> {
    All {
        left: serde_json::map::Iter<'de>,
        /// The value that is next, and its name if the type has a field for it.
        next: Option<(Option<&'de str>, &'de Value)>,
    },
    Step {
        step: Option<&'de str>,
        below: Probe<'de>,
    },
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let (name, value) = match self {
            Self::All { left, .. } => {
                let Some((name, value)) = left.next() else { return Ok(None) };
                (name.as_str(), Some(value))
            }
            Self::Step { step, .. } => {
                let Some(step) = step.take() else { return Ok(None) };
                (step, None)
            }
        };
        let is_field = Cell::new(false);
        let key = seed.deserialize(Name(name, &is_field)).map(Some);
        // A field's name comes from the type and may be shown; a map's key is data.
        if let (Self::All { next, .. }, Some(value)) = (self, value) {
            *next = Some((Some(name).filter(|_| is_field.get()), value));
        }
        // An error in a field's name concerns the struct, so the path ends there.
        key.map_err(|fault| if is_field.get() { fault } else { fault.below(".*") })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let (name, ask) = match self {
            Self::All { next, .. } => {
                let Some((name, value)) = next.take() else { return Err(Fault::default()) };
                (name, Ask::Value(Node(value)))
            }
            Self::Step { below, .. } => (None, Ask::Path(*below)),
        };
        seed.deserialize(ask).map_err(|fault| fault.below(format!(".{}", name.unwrap_or("*"))))
    }
}

/// Methods that read a member's name as a number, as `serde_json` does for maps with such keys.
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

/// The name of a member, which may be read as a number. It names a field or variant when it is read
/// as an identifier; maps read their keys as their own type.
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
