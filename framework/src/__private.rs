//! What the derive macros call. Not public API: it may change in any release.

use std::collections::BTreeSet;

use serde::de::{Unexpected, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserializer, Serialize, Serializer};

pub use k8s_openapi;
pub use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use serde;

pub use crate::crd::definition::{Column, Definition, Field, Scale, crd, schema_of};

use crate::controller::Reconciler;

/// Metadata with that name.
pub fn named(name: String) -> ObjectMeta {
    ObjectMeta { name: Some(name), ..ObjectMeta::default() }
}

/// Begins an object: `apiVersion` and `kind`.
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

/// One field.
///
/// # Errors
/// Those of the serializer.
pub fn write<S: SerializeStruct, T: Serialize>(
    out: &mut S,
    name: &'static str,
    value: &T,
) -> Result<(), S::Error> {
    out.serialize_field(name, value)
}

/// One field, left out when absent.
///
/// # Errors
/// Those of the serializer.
pub fn write_option<S: SerializeStruct, T: Serialize>(
    out: &mut S,
    name: &'static str,
    value: &Option<T>,
) -> Result<(), S::Error> {
    match value {
        Some(value) => out.serialize_field(name, value),
        None => out.skip_field(name),
    }
}

/// Reads `kind`: it may be empty (items of lists carry none), but not another kind's.
///
/// # Errors
/// Another kind stands there.
pub fn same_kind<'de, D: Deserializer<'de>>(
    deserializer: D,
    kind: &'static str,
) -> Result<(), D::Error> {
    deserializer.deserialize_any(Same { expected: kind, found: |text| text })
}

/// Reads `apiVersion`: it may be empty, and of any version of the group.
///
/// # Errors
/// Another group stands there.
pub fn same_group<'de, D: Deserializer<'de>>(
    deserializer: D,
    api_version: &'static str,
) -> Result<(), D::Error> {
    deserializer.deserialize_any(Same { expected: group(api_version), found: group })
}

fn group(api_version: &str) -> &str {
    api_version.rsplit_once('/').map_or("", |(group, _)| group)
}

struct Same {
    expected: &'static str,
    found: fn(&str) -> &str,
}

impl Visitor<'_> for Same {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
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

/// A field that an index over values of type `V` can be made of.
#[diagnostic::on_unimplemented(
    message = "an index of `{V}` cannot be made of a field of type `{Self}`",
    label = "this field is a `{Self}`",
    note = "name the type of the values: `#[index(by_port: i32 = spec.port)]`",
    note = "look into options and lists: `#[index(by_host = spec.tls?.hosts[])]`"
)]
pub trait IndexField<V> {
    /// The values under which the object is found.
    fn index_values(&self) -> Vec<V>;
}

impl<V: Clone> IndexField<V> for V {
    fn index_values(&self) -> Vec<V> {
        vec![self.clone()]
    }
}

impl<V: Clone> IndexField<V> for Option<V> {
    fn index_values(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

impl<V: Clone> IndexField<V> for Vec<V> {
    fn index_values(&self) -> Vec<V> {
        self.clone()
    }
}

impl<V: Clone> IndexField<V> for BTreeSet<V> {
    fn index_values(&self) -> Vec<V> {
        self.iter().cloned().collect()
    }
}

/// Is `K` what the controller reconciles?
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reconcile `{K}`",
    label = "not the `Object` of its `Reconciler`",
    note = "`#[controller(for = …)]` and `type Object = …` of the `Reconciler` name the same kind"
)]
pub trait Reconciles<K> {}

impl<C: Reconciler> Reconciles<C::Object> for C {}

/// Compiles if `C` reconciles `K`.
pub fn reconciles<C: Reconciles<K>, K>() {}
