//! Names of fields in JSON, found through the type that has the field.
//!
//! Generated code calls `(&&&walk.container()).field_source()`: method resolution takes the impl
//! that needs the fewest references, so a type with a table of names ([`FieldNames`]) comes before
//! a type that only serde can read, and such a type before any other type. The choice is made where
//! the type is known, as no bound of a generic function could make it.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Deserializer, Visitor};

use super::fields::FieldNames;
use super::short_name;

/// Name of a field in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonName {
    /// The field stands under this name.
    Named(&'static str),
    /// The fields of the field's value take the place of the field.
    Flattened,
}

/// Function from the identifier of a field to the field's name in JSON; the error gives the reason
/// for a missing name.
pub type FieldSource = fn(&'static str) -> Result<JsonName, String>;

/// A type without a value of that type.
pub struct TypeOf<T>(PhantomData<fn() -> T>);

impl<T> TypeOf<T> {
    /// Names the type.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for TypeOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for TypeOf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short_name::<T>())
    }
}

/// Types that have a table of names.
pub trait Declared {
    /// The names of the table.
    fn field_source(&self) -> FieldSource;
}

impl<T: FieldNames> Declared for &&TypeOf<T> {
    fn field_source(&self) -> FieldSource {
        |rust| {
            let known = T::FIELDS.iter().find(|field| field.rust == rust);
            match known {
                Some(field) if field.flattened => Ok(JsonName::Flattened),
                Some(field) => Ok(JsonName::Named(field.json)),
                None => Err(format!(
                    "`{rust}` of `{}` is not written to JSON: serde skips it, or it is a field of a type \
                     behind a `Deref`",
                    short_name::<T>()
                )),
            }
        }
    }
}

/// Types that serde can read.
pub trait Probed {
    /// The names that the type's `Deserialize` expects.
    fn field_source(&self) -> FieldSource;
}

impl<T: DeserializeOwned> Probed for &TypeOf<T> {
    fn field_source(&self) -> FieldSource {
        |rust| {
            let names =
                T::deserialize(StructNameFinder).err().and_then(|ExpectedNames(names)| names);
            let Some(names) = names else { return Err(no_names::<T>(rust)) };
            let mut fitting = names.iter().filter(|name| folded(name) == folded(rust));
            match (fitting.next(), fitting.next()) {
                (Some(name), None) => Ok(JsonName::Named(name)),
                // The exact name wins over an alias that differs by case.
                (Some(_), Some(_)) if names.contains(&rust) => {
                    Ok(JsonName::Named(names.iter().find(|name| **name == rust).unwrap_or(&"")))
                }
                _ => Err(format!(
                    "none of the names that serde knows of `{}` ({}) is clearly that of the field \
                     `{rust}`: derive `windlass::Schema` for the type, or write the path as a text",
                    short_name::<T>(),
                    names.join(", ")
                )),
            }
        }
    }
}

/// All other types.
pub trait Undeclared {
    /// An error for each field.
    fn field_source(&self) -> FieldSource;
}

impl<T> Undeclared for TypeOf<T> {
    fn field_source(&self) -> FieldSource {
        |rust| Err(no_names::<T>(rust))
    }
}

fn no_names<T>(rust: &str) -> String {
    format!(
        "the name of the field `{rust}` is not known, because `{}` implements no `Deserialize` that \
         lists its fields: derive `windlass::Schema` for the type, or write the path as a text",
        short_name::<T>()
    )
}

/// Returns a name without case and underscores: `external_i_ps`, `externalIPs` and `external_ips`
/// are the same name.
fn folded(name: &str) -> String {
    let plain = name.chars().filter(|c| c.is_alphanumeric());
    plain.flat_map(char::to_lowercase).collect()
}

/// A deserializer that fails with the names of the struct that was asked for.
struct StructNameFinder;

/// The names; `None` if something else than a struct was asked for.
struct ExpectedNames(Option<&'static [&'static str]>);

impl fmt::Debug for ExpectedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ExpectedNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a probe holds no value")
    }
}

impl std::error::Error for ExpectedNames {}

impl serde::de::Error for ExpectedNames {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for StructNameFinder {
    type Error = ExpectedNames;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, ExpectedNames> {
        Err(ExpectedNames(None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ExpectedNames> {
        Err(ExpectedNames(Some(fields)))
    }

    // A newtype is written as the content.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ExpectedNames> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
