//! Maps: objects of JSON under their shape, and entries of an expression.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::error::EvalError;
use super::value::{Text, Value};
use crate::syntax::identifiers::unescape;
use crate::types::shape::{ObjectShape, Property, Shape};

/// A map.
#[derive(Debug, Clone)]
pub enum Map<'a> {
    /// An object with declared properties.
    Object(&'a JsonMap<String, Json>, &'a ObjectShape),
    /// An object whose values have the same shape.
    Json(&'a JsonMap<String, Json>, &'a Shape),
    /// An object without a shape.
    Dyn(&'a JsonMap<String, Json>),
    /// Entries of an expression.
    Entries(Arc<Entries<'a>>),
}

/// Entries in the order of their insertion.
#[derive(Clone, Default)]
pub struct Entries<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    index: HashMap<Key<'a>, usize>,
    /// Number of keys so far that no look-up finds.
    unfindable: usize,
}

impl fmt::Debug for Entries<'_> {
    // Without the index: the order differs from map to map.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries.iter().map(|(key, value)| (key, value))).finish()
    }
}

/// A key, exact in its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(Text<'a>),
    Null,
    Duration(i64),
    Timestamp(i64, i64),
    Type(Arc<str>),
    /// A list, a map, an optional or a value of a library: Go compares the addresses of such keys.
    Unfindable(usize),
}

impl<'a> Key<'a> {
    fn new(value: &Value<'a>) -> Option<Key<'a>> {
        Some(match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => Key::Uint(*value),
            Value::Double(value) => Key::Double(value.to_bits()),
            Value::String(text) => Key::String(text.clone()),
            Value::Null => Key::Null,
            Value::Duration(duration) => Key::Duration(duration.as_nanos()),
            Value::Timestamp(time) => Key::Timestamp(time.unix_seconds(), time.subsec_nanos()),
            Value::Type(name) => Key::Type(name.clone()),
            _ => return None,
        })
    }

    /// The same number in the other types.
    fn alternatives(&self) -> [Option<Key<'a>>; 2] {
        match *self {
            Key::Int(value) => {
                [u64::try_from(value).ok().map(Key::Uint), Some(Key::double(value as f64))]
            }
            Key::Uint(value) => {
                [i64::try_from(value).ok().map(Key::Int), Some(Key::double(value as f64))]
            }
            Key::Double(bits) => {
                let value = f64::from_bits(bits);
                let (int, uint) = (value as i64, value as u64);
                [
                    (int as f64 == value).then_some(Key::Int(int)),
                    (uint as f64 == value).then_some(Key::Uint(uint)),
                ]
            }
            _ => [None, None],
        }
    }

    fn double(value: f64) -> Key<'a> {
        Key::Double(value.to_bits())
    }
}

impl<'a> Entries<'a> {
    /// Adds an entry or replaces the value of its key.
    pub fn set(&mut self, key: Value<'a>, value: Value<'a>) -> Result<(), EvalError> {
        if matches!(key, Value::Bytes(_)) {
            return Err(EvalError::Internal(
                "internal error: runtime error: hash of unhashable type types.Bytes",
            ));
        }
        let exact = Key::new(&key).unwrap_or_else(|| {
            self.unfindable += 1;
            Key::Unfindable(self.unfindable)
        });
        match self.index.get(&exact).and_then(|&index| self.entries.get_mut(index)) {
            Some(entry) => entry.1 = value,
            None => {
                self.index.insert(exact, self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    /// Value of a key; a number finds an equal number of another type.
    pub fn get(&self, key: &Value<'a>) -> Option<&Value<'a>> {
        let key = Key::new(key)?;
        let exact = self.index.get(&key).copied();
        let index = exact.or_else(|| {
            key.alternatives().iter().flatten().find_map(|k| self.index.get(k).copied())
        })?;
        self.entries.get(index).map(|(_, value)| value)
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: &Value<'a>) {
        let Some(index) = Key::new(key).and_then(|key| self.index.remove(&key)) else { return };
        if index < self.entries.len() {
            self.entries.remove(index);
        }
        self.index.values_mut().filter(|at| **at > index).for_each(|at| *at -= 1);
    }
}

/// The property with this name in expressions, or with this name in JSON: `self.namespace`,
/// `dyn(self)['min-size']`.
fn property<'a>(shape: &'a ObjectShape, name: &str) -> Option<&'a Property> {
    let found = shape.properties.binary_search_by(|one| (*one.name).cmp(name)).ok();
    let by_json_name = || {
        let name = unescape(name)?;
        shape.properties.iter().position(|one| *one.json_name == *name)
    };
    shape.properties.get(found.or_else(by_json_name)?)
}

impl<'a> Map<'a> {
    /// Number of entries; of an object all keys of the data.
    pub fn len(&self) -> usize {
        match self {
            Map::Object(map, _) | Map::Json(map, _) | Map::Dyn(map) => map.len(),
            Map::Entries(entries) => entries.entries.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Value of a key; `None` without such an entry. Null in a declared property counts as absent.
    pub fn find(&self, key: &Value<'a>) -> Result<Option<Value<'a>>, EvalError> {
        if let Map::Entries(entries) = self {
            return Ok(entries.get(key).cloned());
        }
        let name = match (self, key) {
            (_, Value::String(name)) => name,
            // A map without a schema is a map of Go: keys of another type are absent.
            (Map::Dyn(_), _) => return Ok(None),
            _ => return Err(EvalError::no_such_overload()),
        };
        self.find_field(name)
    }

    /// Value of a key of [`Map::keys`] at the index there. A key that is a list or a value of a
    /// library has a value, too, although no look-up finds it.
    pub(crate) fn value_at(&self, index: usize, key: &Value<'a>) -> Result<Value<'a>, EvalError> {
        match self {
            Map::Entries(entries) => {
                let entry = entries.entries.get(index);
                Ok(entry.map_or(Value::Null, |(_, value)| value.clone()))
            }
            _ => Ok(self.find(key)?.unwrap_or(Value::Null)),
        }
    }

    /// Value of a field by its name in expressions.
    pub(crate) fn find_field(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        let (json, shape) = match self {
            Map::Object(map, shape) => {
                let Some(property) = property(shape, name) else { return Ok(None) };
                (map.get(&*property.json_name).filter(|value| !value.is_null()), &property.shape)
            }
            Map::Json(map, shape) => (map.get(name), *shape),
            Map::Dyn(map) => (map.get(name), &Shape::Dyn),
            Map::Entries(entries) => return Ok(entries.get(&Value::text(name)).cloned()),
        };
        json.map(|json| Value::json(json, shape)).transpose()
    }

    /// The keys as expressions see them.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Object(map, shape) => {
                let known =
                    |name: &String| shape.properties.iter().find(|p| *p.json_name == **name);
                map.keys()
                    .filter_map(known)
                    .map(|p| Value::String(Text::Borrowed(&p.name)))
                    .collect()
            }
            Map::Json(map, _) | Map::Dyn(map) => {
                map.keys().map(|k| Value::String(Text::Borrowed(k))).collect()
            }
            Map::Entries(entries) => entries.entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }

    /// The data of an object.
    pub(crate) fn json_map(&self) -> Option<&'a JsonMap<String, Json>> {
        match self {
            Map::Object(map, _) | Map::Json(map, _) | Map::Dyn(map) => Some(map),
            Map::Entries(_) => None,
        }
    }
}
