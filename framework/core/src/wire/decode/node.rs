//! A deserializer of a parsed value, by which `explain` learns from a type's own `Deserialize` why
//! the value does not decode.

// DESIGN.md, 91: A program contains two decoders per kind, and a third for projections

use std::cell::Cell;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

/// Prefix of the newtypes by which `serde_json` asks for the text of a value, which does not exist
/// here.
const PRIVATE: &str = "$serde_json::private";

/// The error type, which keeps only the parts that come from the type.
#[derive(Debug, Default)]
pub(super) struct NodeError {
    /// Steps from the value up to the root.
    pub(super) path: Vec<String>,
    /// `None` when the deserializer itself ended the attempt.
    pub(super) reason: Option<String>,
}

impl NodeError {
    /// Creates an error at the present value.
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..Self::default() }
    }

    /// Adds a step to the path, while the error passes up through the value.
    fn below(mut self, name: impl Into<String>) -> Self {
        self.path.push(name.into());
        self
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_deref().unwrap_or_default())
    }
}

impl std::error::Error for NodeError {}

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

/// Lists the names that a type knows, which are no part of the value.
fn one_of(names: &[&str]) -> String {
    match names {
        [] => "there are none".to_owned(),
        names => format!("expected one of `{}`", names.join("`, `")),
    }
}

impl de::Error for NodeError {
    fn custom<T: fmt::Display>(_: T) -> Self {
        // The text is dropped, because it may quote the value.
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
#[derive(Clone, Copy)]
pub(super) struct ValueNode<'de>(pub(super) &'de Value);

impl<'de> ValueNode<'de> {
    /// Passes the value to the visitor as its own type.
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), _, _) => visitor.visit_u64(number),
                (_, Some(number), _) => visitor.visit_i64(number),
                (_, _, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(_) => self.list(visitor),
            Value::Object(_) => self.object(visitor),
        }
    }

    /// Passes the members of an object to the visitor.
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.0 {
            Value::Object(members) => visitor.visit_map(NodeMembers::of(members)),
            _ => self.any(visitor),
        }
    }

    /// Passes the items of a list to the visitor.
    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        let Value::Array(items) = self.0 else { return self.any(visitor) };
        let mut items = ItemAccess { left: items.iter(), at: 0 };
        let value = visitor.visit_seq(&mut items)?;
        if items.left.len() == 0 {
            return Ok(value);
        }
        // As in `serde_json`: a tuple has to take all items.
        Err(NodeError::new("invalid length, expected fewer items"))
    }
}

/// Methods that forward to `$as`.
macro_rules! alike {
    ($as:ident: $($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, NodeError> {
            self.$as(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for ValueNode<'de> {
    type Error = NodeError;

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        identifier unit unit_struct
    }
    alike! { list:
        deserialize_seq()
        deserialize_tuple(_len: usize)
        deserialize_tuple_struct(_name: &'static str, _len: usize)
    }
    alike! { object:
        deserialize_map()
        deserialize_struct(_name: &'static str, _fields: &'static [&'static str])
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.any(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        if name.starts_with(PRIVATE) {
            // Such types need the text of the value, which a parsed value has lost.
            return Err(NodeError::default());
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        match self.0 {
            Value::String(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            // An externally tagged variant: its name is the only member.
            Value::Object(members) if members.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(NodeMembers::of(members)))
            }
            // An enum is written as an object with the variant as its only member.
            Value::Object(_) => Err(NodeError::new("invalid value: object, expected one member")),
            _ => self.any(visitor),
        }
    }
}

/// The items of a list.
struct ItemAccess<'de> {
    /// Items that were not read yet.
    left: std::slice::Iter<'de, Value>,
    /// Index of the next item, for the path.
    at: usize,
}

impl<'de> SeqAccess<'de> for ItemAccess<'de> {
    type Error = NodeError;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, NodeError> {
        let Some(value) = self.left.next() else { return Ok(None) };
        let at = self.at;
        self.at += 1;
        let item = seed.deserialize(ValueNode(value));
        item.map(Some).map_err(|fault| fault.below(format!("[{at}]")))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

/// The members of an object.
struct NodeMembers<'de> {
    /// Members that were not read yet.
    left: serde_json::map::Iter<'de>,
    /// The next value, and the value's name if the type has a field for it.
    next: Option<(Option<&'de str>, &'de Value)>,
}

impl<'de> NodeMembers<'de> {
    /// Begins before the first member.
    fn of(members: &'de serde_json::Map<String, Value>) -> Self {
        Self { left: members.iter(), next: None }
    }
}

impl<'de> MapAccess<'de> for NodeMembers<'de> {
    type Error = NodeError;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, NodeError> {
        let Some((name, value)) = self.left.next() else { return Ok(None) };
        let name = name.as_str();
        let is_field = Cell::new(false);
        let key = seed.deserialize(MemberKey(name, &is_field)).map(Some);
        // A field's name comes from the type and may be shown; a map's key is data.
        self.next = Some((Some(name).filter(|_| is_field.get()), value));
        // An error in a field's name concerns the struct, so the path ends there.
        key.map_err(|fault| if is_field.get() { fault } else { fault.below(".*") })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, NodeError> {
        // A type that asks for a value before the name: a fault of the type, without further
        // knowledge.
        let Some((name, value)) = self.next.take() else { return Err(NodeError::default()) };
        let read = seed.deserialize(ValueNode(value));
        read.map_err(|fault| fault.below(format!(".{}", name.unwrap_or("*"))))
    }
}

/// Methods that read a member's name as a number, as `serde_json` does for maps with such keys.
macro_rules! as_number {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
            match (self.0.parse(), self.0.parse()) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_borrowed_str(self.0),
            }
        })*
    };
}

/// The name of a member, which may be read as a number. The name stands for a field or variant when
/// read as an identifier; maps read their keys as their own type.
struct MemberKey<'de, 'a>(&'de str, &'a Cell<bool>);

impl<'de> Deserializer<'de> for MemberKey<'de, '_> {
    type Error = NodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NodeError> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
        self.1.set(true);
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NodeError> {
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
