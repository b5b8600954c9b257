//! Functions for the derive macros and for tests behind the public API. Not public API: these
//! functions may change in any release.

mod apply;
mod conditions;
mod embedded;
mod found_names;
pub mod keys;
mod list_keys;
pub mod literal;
mod object_names;
mod projected;
mod root;
mod same_kind;
pub mod schema;
mod status;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::fmt;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use k8s_openapi;
pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use schemars;
pub use serde;
pub use serde_json;

pub use apply::{Applied, ApplyAlias, ApplyValue};
pub use conditions::{ConditionList, condition_list};
pub use embedded::embedded_schema;
pub use found_names::{FoundNames, FoundPaths, MemberName, MemberNames, ProjectedPath};
pub use object_names::{Named, OtherNames, has_label_names, has_subdomain_names};
pub use projected::{
    Base, Members, ProjectedField, ProjectedSlot, ProjectionOf, ReadField, SelectedValues,
    base_info, read_below, read_metadata, read_nothing, read_root, selected_value, shrunk,
    whole_info, with_selected_values, write_field, write_optional_field,
};

pub use root::{
    AbsentValue, AlwaysThere, NeverWritten, api_version_bytes, api_version_length,
    api_version_text, check_group, check_version, default_of, index_values, required_or,
    write_unless,
};
pub use same_kind::{Identity, Parts, Repeated, Unknown, is_one_of, is_same_text, is_same_type};
pub use status::{FilledByDefault, Filling, Missing, NotFilled, Of};

/// Returns its input: the code of a derive with `crate = …`, which is compiled if the path of that
/// key leads here.
#[doc(hidden)]
#[macro_export]
macro_rules! __here {
    ($($code:tt)*) => { $($code)* };
}
pub use crate::__here as here;

/// Decodes a projection with the scanner; `None` when that fails.
pub fn decode_partial<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    crate::wire::partial_decode::decoded(text)
}

pub use crate::crd::definition::{
    BuildVersion, Column, Definition, DefinitionField, Field, Rule, Scale, crd, version,
};
pub use crate::crd::versions::Versions;
pub use crate::resource::path::{FieldName, FieldNames};

/// Conversion between versions.
pub mod convert {
    pub use crate::crd::versions::convert::*;
}

/// Walks along paths.
pub mod path {
    pub use crate::resource::path::*;
}

/// The only type that `metadata` can have.
#[diagnostic::on_unimplemented(
    message = "`metadata` is an `ObjectMeta` of `k8s_openapi`, not a `{Self}`",
    label = "write `ObjectMeta` here"
)]
pub trait Meta: Sized {
    /// Returns the metadata.
    fn get(&self) -> &ObjectMeta;
    /// Returns the metadata, to change.
    fn get_mut(&mut self) -> &mut ObjectMeta;
    /// Creates metadata with that name.
    fn named(name: String) -> Self;
}

impl Meta for ObjectMeta {
    fn get(&self) -> &ObjectMeta {
        self
    }

    fn get_mut(&mut self) -> &mut ObjectMeta {
        self
    }

    fn named(name: String) -> Self {
        Self { name: Some(name), ..Self::default() }
    }
}

/// [`Serialize`], with an error text of this crate for the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a resource: it is not `Serialize`",
    note = "the types of a resource derive `Serialize`, `Deserialize` and `Schema`"
)]
pub trait Written: Serialize {}

// Not recommended: the compiler then shows the text of the trait, and not this bound.
#[diagnostic::do_not_recommend]
impl<T: Serialize> Written for T {}

/// [`Deserialize`], with an error text of this crate for the compiler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a resource: it is not `Deserialize`",
    note = "the types of a resource derive `Serialize`, `Deserialize` and `Schema`"
)]
pub trait Readable<'de>: Deserialize<'de> {}

#[diagnostic::do_not_recommend]
impl<'de, T: Deserialize<'de>> Readable<'de> for T {}

/// Begins an object with `apiVersion` and `kind`.
///
/// # Errors
/// Those of the serializer.
pub fn begin<S: Serializer>(
    serializer: S,
    kind: &'static str,
    api_version: &'static str,
    fields: usize,
) -> Result<S::SerializeStruct, S::Error> {
    let mut out = serializer.serialize_struct(kind, fields)?;
    out.serialize_field("apiVersion", api_version)?;
    out.serialize_field("kind", kind)?;
    Ok(out)
}

/// Writes a field.
///
/// # Errors
/// Those of the serializer.
pub fn write<S: SerializeStruct, T: Written>(
    out: &mut S,
    name: &'static str,
    value: &T,
) -> Result<(), S::Error> {
    out.serialize_field(name, value)
}

/// Reads the next name in `fields` and returns its position; `None` behind the last. Other fields
/// are skipped, `apiVersion` and `kind` checked: they may be empty (items of lists have none) and
/// the version may differ, but not the group or the kind.
///
/// # Errors
/// Those of the deserializer; another group or kind.
pub fn next_field<'de, A: MapAccess<'de>>(
    map: &mut A,
    api_version: &'static str,
    kind: &'static str,
    fields: &'static [&'static str],
) -> Result<Option<usize>, A::Error> {
    while let Some(name) = map.next_key_seed(KnownNames(fields))? {
        match name {
            RootMember::Field(place) => return Ok(Some(place)),
            // Only the group: an object of another version is read, too.
            RootMember::ApiVersion => {
                map.next_value_seed(RequiredText { expected: group(api_version), found: group })?;
            }
            RootMember::Kind => {
                map.next_value_seed(RequiredText { expected: kind, found: |text| text })?
            }
            // The server may know fields that the type does not have.
            RootMember::Other => drop(map.next_value::<IgnoredAny>()?),
        }
    }
    Ok(None)
}

/// Reads the value of field `name`.
///
/// # Errors
/// Those of the deserializer; a duplicate field.
pub fn read<'de, A: MapAccess<'de>, T: Readable<'de>>(
    map: &mut A,
    name: &'static str,
    into: &mut Option<T>,
) -> Result<(), A::Error> {
    if into.is_some() {
        return Err(A::Error::duplicate_field(name));
    }
    *into = Some(map.next_value()?);
    Ok(())
}

/// Returns the value of a required field.
///
/// # Errors
/// The field is absent.
pub fn required<T, E: serde::de::Error>(value: Option<T>, name: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(name))
}

/// A recognised name.
enum RootMember {
    Field(usize),
    ApiVersion,
    Kind,
    Other,
}

/// Recognises field names without copying them.
struct KnownNames(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KnownNames {
    type Value = RootMember;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RootMember, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KnownNames {
    type Value = RootMember;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<RootMember, E> {
        Ok(match name {
            "apiVersion" => RootMember::ApiVersion,
            "kind" => RootMember::Kind,
            name => self
                .0
                .iter()
                .position(|known| *known == name)
                .map_or(RootMember::Other, RootMember::Field),
        })
    }
}

/// The group of an `apiVersion`; empty for the core group.
fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

/// A text that must equal `expected`, or be empty.
struct RequiredText {
    /// The text that is accepted.
    expected: &'static str,
    /// Returns the part of a text that is compared.
    found: fn(&str) -> &str,
}

impl<'de> DeserializeSeed<'de> for RequiredText {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for RequiredText {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        // An empty text names no other kind, so there is no contradiction.
        if text.is_empty() || (self.found)(text) == self.expected {
            Ok(())
        } else {
            Err(E::invalid_value(Unexpected::Str(text), &self.expected))
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A field that can be indexed by values of type `V`.
#[diagnostic::on_unimplemented(
    message = "an index of `{V}` cannot be made of a field of type `{Self}`",
    label = "this field is a `{Self}`",
    note = "name the type of the values: `#[index(by_port: i32 = spec.port)]`",
    note = "`[]` leads to each element of a list, `keys()` and `values()` into a map: `#[index(by_port: i32 = spec.ports[].number)]`"
)]
pub trait IndexField<V> {
    /// Values under which the index finds the object.
    fn index_values(&self) -> Vec<V>;
}

impl<V: Clone> IndexField<V> for V {
    fn index_values(&self) -> Vec<V> {
        vec![self.clone()]
    }
}

#[diagnostic::do_not_recommend]
impl<V: Clone> IndexField<V> for Option<V> {
    fn index_values(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

#[diagnostic::do_not_recommend]
impl<V: Clone> IndexField<V> for Vec<V> {
    fn index_values(&self) -> Vec<V> {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<V: Clone, S> IndexField<V> for HashSet<V, S> {
    fn index_values(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

#[diagnostic::do_not_recommend]
impl<V: Clone> IndexField<V> for VecDeque<V> {
    fn index_values(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

#[diagnostic::do_not_recommend]
impl<V: Clone> IndexField<V> for BTreeSet<V> {
    fn index_values(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

/// Holds if both types are the same.
#[diagnostic::on_unimplemented(
    message = "the controller is `for = {K}`, but its reconciler's `Object` is `{Self}`",
    label = "its reconciler works on `{Self}`",
    note = "`#[controller(for = …)]` and `type Object = …` of the `Reconciler` name the same kind"
)]
pub trait Is<K> {}

impl<K> Is<K> for K {}
