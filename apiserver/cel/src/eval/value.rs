//! Values of expressions: scalars, lists, maps, optionals and values of libraries.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::list::List;
use super::map::Map;
use crate::library::duration::Duration;
use crate::library::timestamp::Timestamp;

/// A value. Cheap to clone: texts and containers are borrowed or shared.
#[derive(Debug, Clone)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    String(Text<'a>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// `list`
    List(List<'a>),
    /// `map`, and an object with declared fields
    Map(Map<'a>),
    /// `google.protobuf.Timestamp`
    Timestamp(Timestamp),
    /// `google.protobuf.Duration`
    Duration(Duration),
    /// The name of a type
    Type(Arc<str>),
    /// `optional_type`
    Optional(Option<Arc<Value<'a>>>),
    /// A value of a library
    Opaque(Arc<dyn Opaque>),
}

/// A value of a library: a quantity, an address, a URL, a version.
pub trait Opaque: fmt::Debug + Send + Sync {
    /// Name of the type: `kubernetes.Quantity`.
    fn type_name(&self) -> &str;
    /// Whether another value of the same type is equal.
    fn equals(&self, other: &dyn Opaque) -> bool;
    /// Whether `==` takes the value on its right side. The result of an addition of quantities is
    /// not taken: kube-apiserver finds no overload.
    fn is_comparable(&self) -> bool {
        true
    }
    /// The value itself, for functions of the library.
    fn as_any(&self) -> &dyn Any;
    /// Number that the cost of a call counts for the value; `None` for a value without a size.
    fn size(&self) -> Option<u64> {
        None
    }
    /// Length of the regular expression of a named format, for the cost of `validate`.
    fn regex_size(&self) -> Option<u64> {
        None
    }
    /// Whether `==` costs 1, for values of any size; this holds for every type of Kubernetes'
    /// libraries.
    fn has_unit_equality_cost(&self) -> bool {
        true
    }
}

/// A text that is borrowed from the data or shared.
#[derive(Clone)]
pub enum Text<'a> {
    /// Text of the data.
    Borrowed(&'a str),
    /// Text of the program or of a result.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl std::hash::Hash for Text<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<'a> Value<'a> {
    /// A text that the value owns.
    pub fn text(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    /// An optional with a value.
    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The value without the schema of the parts: data are read unchanged.
    pub(crate) fn without_shape(self) -> Value<'a> {
        match self {
            Value::List(List::Json(items, _)) => Value::List(List::Dyn(items)),
            Value::Map(Map::Object(entries, _) | Map::Json(entries, _)) => {
                Value::Map(Map::Dyn(entries))
            }
            other => other,
        }
    }

    /// A list of these values.
    pub fn list(values: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::from(values))
    }

    /// Name of the value's type, as `type(value)` displays the name.
    pub fn type_name(&self) -> &str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Opaque(value) => value.type_name(),
        }
    }

    /// Name of the Go type that messages of cel-go print for the value.
    pub(crate) fn go_type_name(&self) -> &'static str {
        match self {
            Value::Null => "types.Null",
            Value::Bool(_) => "types.Bool",
            Value::Int(_) => "types.Int",
            Value::Uint(_) => "types.Uint",
            Value::Double(_) => "types.Double",
            Value::String(_) => "types.String",
            Value::Bytes(_) => "types.Bytes",
            Value::List(_) => "*types.baseList",
            Value::Map(_) => "*types.baseMap",
            Value::Timestamp(_) => "types.Timestamp",
            Value::Duration(_) => "types.Duration",
            Value::Type(_) => "*types.Type",
            Value::Optional(_) => "*types.Optional",
            Value::Opaque(_) => "ref.Val",
        }
    }

    /// Size that the cost of a call counts: characters, bytes, elements, entries; 1 for anything
    /// else.
    pub fn size(&self) -> u64 {
        match self {
            Value::String(text) => char_count(text),
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Opaque(value) => value.size().unwrap_or(1),
            _ => 1,
        }
    }
}

/// Number of code points.
pub(crate) fn char_count(text: &str) -> u64 {
    if text.is_ascii() { text.len() as u64 } else { text.chars().count() as u64 }
}
