//! Reads a status that is stored in part as a whole.
//!
//! A status is written field by field: the first write is mostly a condition, and no other field
//! exists then. serde refuses an object without a field that has no default, so the program that
//! wrote such an object could not read the object back. If the status type has a `Default`, fields
//! that serde misses are taken from that. A field that serde fills (`Option`, `#[serde(default)]`)
//! is not touched, and a type without missing fields is read like any other.

// DESIGN.md, 85: The schema of a status requires no fields at its top

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Readable;

/// A field that serde requires, with its default.
#[derive(Debug)]
pub struct Missing {
    /// Name in the JSON.
    name: String,
    /// Other names by which the type reads the field.
    aliases: Vec<&'static str>,
    /// The default.
    value: Value,
}

/// Values for absent fields of a status type; determined once.
#[derive(Debug, Default)]
pub struct Filling(OnceLock<Vec<Missing>>);

impl Filling {
    /// Creates an empty cell.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the values, which `find` determines in the first call.
    pub fn get(&self, find: fn() -> Vec<Missing>) -> &[Missing] {
        self.0.get_or_init(find)
    }
}

/// Represents the type `T`, to select the trait by whether `T` has a default.
#[derive(Debug)]
pub struct Of<T>(PhantomData<fn() -> T>);

impl<T> Of<T> {
    /// Represents that type.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// Types with a default. A method of `Of<T>` takes precedence over a method of `&Of<T>`.
pub trait FilledByDefault {
    /// The fields of the default without which the type cannot be read.
    fn missing(&self) -> Vec<Missing>;
}

impl<T: Default + Serialize + DeserializeOwned> FilledByDefault for Of<T> {
    fn missing(&self) -> Vec<Missing> {
        let reads = |fields: Map<String, Value>| T::deserialize(Value::Object(fields)).is_ok();
        find_missing(serde_json::to_value(T::default()).ok(), &reads, names_of::<T>)
    }
}

/// Returns the fields of a default without which a type cannot be read. Not generic, so that this
/// function is compiled once.
fn find_missing(
    default: Option<Value>,
    reads: &dyn Fn(Map<String, Value>) -> bool,
    names: fn() -> &'static [&'static str],
) -> Vec<Missing> {
    let Some(Value::Object(whole)) = default else { return Vec::new() };
    // A default that cannot be read back shows nothing about the fields.
    if !reads(whole.clone()) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for (name, value) in &whole {
        let mut without = whole.clone();
        without.remove(name);
        // serde fills this field without help.
        if reads(without.clone()) {
            continue;
        }
        // Another name is an alias if the type reads the value under that name.
        let is_alias = |other: &&'static str| {
            let mut with = without.clone();
            !whole.contains_key(*other)
                && with.insert((*other).to_owned(), value.clone()).is_none()
                && reads(with)
        };
        let aliases = names().iter().copied().filter(is_alias).collect();
        missing.push(Missing { name: name.clone(), aliases, value: value.clone() });
    }
    missing
}

/// Types without a default.
pub trait NotFilled {
    /// Returns no fields.
    fn missing(&self) -> Vec<Missing>;
}

impl<T> NotFilled for &Of<T> {
    fn missing(&self) -> Vec<Missing> {
        Vec::new()
    }
}

/// Reads the status with any of the fields absent.
///
/// # Errors
/// Those of the deserializer; a duplicate field.
pub(super) fn read_status<'de, A: MapAccess<'de>, T: Readable<'de>>(
    map: &mut A,
    name: &'static str,
    into: &mut Option<Option<T>>,
    missing: &'static [Missing],
) -> Result<(), A::Error> {
    if into.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    *into = Some(match missing {
        // A type without missing fields is read directly.
        [] => map.next_value()?,
        missing => map.next_value_seed(Optional { missing, status: PhantomData })?,
    });
    Ok(())
}

/// Checks that an empty status can be read.
///
/// # Errors
/// The reason that serde reports.
pub(super) fn reads_in_part<T>(missing: &'static [Missing]) -> Result<(), String>
where
    T: for<'de> Readable<'de>,
{
    match T::deserialize(object_of(missing)) {
        Ok(_) => Ok(()),
        Err(error) => Err(text_of(&error)),
    }
}

/// An object of the missing fields: [`WithMissingFields`] would have the type's `Deserialize`
/// compiled once more.
fn object_of(missing: &[Missing]) -> Value {
    missing.iter().map(|it| (it.name.clone(), it.value.clone())).collect::<Map<_, _>>().into()
}

fn text_of(error: &serde_json::Error) -> String {
    error.to_string()
}

/// Names of a struct's fields, aliases included; empty for a type that is read in another way.
fn names_of<T: DeserializeOwned>() -> &'static [&'static str] {
    /// A deserializer without a value, which notes the names that a struct asks for.
    struct FieldNamesProbe<'a>(&'a Cell<&'static [&'static str]>);

    impl<'de> Deserializer<'de> for FieldNamesProbe<'_> {
        type Error = de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
            Err(de::Error::custom("only asked for names"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            self.0.set(fields);
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
            unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let names = Cell::new([].as_slice());
    // The attempt always fails; the error path leaves the names in the cell.
    drop(T::deserialize(FieldNamesProbe(&names)));
    names.get()
}

/// Reads an optional status; a given status is completed.
struct Optional<T> {
    /// Defaults of the type.
    missing: &'static [Missing],
    /// Type of the status.
    status: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Optional<T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Optional<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("option")
    }

    fn visit_none<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Option<T>, D::Error> {
        // Only a status that is there is completed: an absent status stays absent, as in the
        // server's object.
        T::deserialize(WithMissingFields { inner, missing: self.missing }).map(Some)
    }
}

/// An object with the missing fields after the given ones.
struct WithMissingFields<D> {
    /// The deserializer or visitor that is wrapped.
    inner: D,
    /// Fields to add.
    missing: &'static [Missing],
}

/// Methods that pass a value on unchanged.
macro_rules! forwarded {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($argument,)* visitor)
        }
    )*};
}

/// Methods whose visitor is wrapped, so that the received object is completed.
macro_rules! filled {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let missing = self.missing;
            self.inner.$method($($argument,)* WithMissingFields { inner: visitor, missing })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WithMissingFields<D> {
    type Error = D::Error;

    // Only these can lead to a struct; all others pass through unchanged.
    filled! {
        deserialize_any();
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_newtype_struct(name: &'static str);
    }

    forwarded! {
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Methods that pass a scalar on unchanged.
macro_rules! visited {
    ($($method:ident: $type:ty;)*) => {$(
        fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WithMissingFields<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visited! {
        visit_bool: bool;
        visit_i64: i64;
        visit_i128: i128;
        visit_u64: u64;
        visit_u128: u128;
        visit_f64: f64;
        visit_char: char;
        visit_str: &str;
        visit_borrowed_str: &'de str;
        visit_string: String;
        visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8];
        visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(WithMissingFields { inner, missing: self.missing })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(seq)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(access)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        // A new list for each object: fields that are given are removed from the list.
        let missing = self.missing.iter().collect();
        self.inner.visit_map(FieldsWithMissing { map, is_read: false, missing, next: None })
    }
}

/// The fields of the object, then the missing ones.
struct FieldsWithMissing<A> {
    /// The object's own fields.
    map: A,
    /// Whether all own fields were read.
    is_read: bool,
    /// Defaults of the fields that have not come.
    missing: Vec<&'static Missing>,
    /// The missing field whose name was returned last, and whose value is next.
    next: Option<&'static Missing>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for FieldsWithMissing<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        // The object's own fields come first.
        if !self.is_read {
            if let Some(name) = self.map.next_key::<String>()? {
                // A field that is given, under the usual name or an alias, needs no default.
                self.missing.retain(|missing| {
                    missing.name != name && !missing.aliases.contains(&name.as_str())
                });
                return seed.deserialize(name.into_deserializer()).map(Some);
            }
            // A map must not be asked for another name after the end.
            self.is_read = true;
        }
        self.next = self.missing.pop();
        let Some(next) = self.next else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(&next.name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        match self.next.take() {
            None => self.map.next_value_seed(seed),
            Some(missing) => seed.deserialize(&missing.value).map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests;
