//! Functions for `#[derive(Projection)]`: read the members of a projection, skip the others.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize};

use super::found_names::MemberNames;
use crate::resource::{Resource, ResourceInfo};

/// A type that a field of a projection can have.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a projection: it is not both `Serialize` and `Deserialize`",
    note = "the types of a projection derive `Serialize` and `Deserialize`"
)]
pub trait ProjectedField: Serialize + DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned> ProjectedField for T {}

/// A type that can have projections.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a Kubernetes resource",
    note = "name the type of the whole kind: one that derives `windlass::CustomResource`, or of `k8s_openapi::api`"
)]
pub trait Base {
    /// Identity of the whole kind.
    fn info() -> Option<ResourceInfo>;
}

#[diagnostic::do_not_recommend]
impl<K: Resource> Base for K {
    fn info() -> Option<ResourceInfo> {
        K::static_info()
    }
}

/// A projection. The kind's type is named only here, so that a mistake causes a single error.
pub trait ProjectionOf {
    /// The type of the whole kind.
    type Whole: Base;
}

/// The kind that a projection belongs to.
pub fn base_info<K: Base>() -> Option<ResourceInfo> {
    K::info()
}

/// The kind that `V` is a projection of.
pub fn whole_info<V: ProjectionOf>() -> Option<ResourceInfo> {
    V::Whole::info()
}

/// The members of an object that are read.
pub trait Members<'de> {
    /// Names of the members.
    ///
    /// # Errors
    /// The name of a field that is not known.
    fn names(&self) -> Result<MemberNames, &'static str>;

    /// Reads the value of the member at this position among the names.
    ///
    /// # Errors
    /// Those of the deserializer.
    fn read<A: MapAccess<'de>>(&mut self, place: usize, map: &mut A) -> Result<(), A::Error>;
}

/// Reads the object at the root.
///
/// # Errors
/// Those of the deserializer.
pub fn read_root<'de, D: Deserializer<'de>>(
    deserializer: D,
    members: impl Members<'de>,
) -> Result<(), D::Error> {
    deserializer.deserialize_map(MembersSeed(members))
}

/// Reads an object on the way to a field; the object may be null.
///
/// # Errors
/// Those of the deserializer.
pub fn read_below<'de, A: MapAccess<'de>>(
    map: &mut A,
    members: impl Members<'de>,
) -> Result<(), A::Error> {
    map.next_value_seed(MembersSeed(members))
}

/// The place of a value that is read.
#[derive(Debug)]
pub struct ProjectedSlot<'a, T>(pub &'a mut Option<T>);

/// Reads a value of a type that has `Deserialize`. A missing one is reported where the value is
/// written, and only there: the method of a slot is taken then.
pub trait ReadField {
    /// Reads the value at `path`.
    ///
    /// # Errors
    /// Those of the deserializer; a duplicate field.
    fn read_field<'de, A: MapAccess<'de>>(
        self,
        map: &mut A,
        path: &'static str,
    ) -> Result<(), A::Error>;
}

impl<T: DeserializeOwned> ReadField for ProjectedSlot<'_, T> {
    fn read_field<'de, A: MapAccess<'de>>(
        self,
        map: &mut A,
        path: &'static str,
    ) -> Result<(), A::Error> {
        if self.0.is_some() {
            return Err(A::Error::duplicate_field(path));
        }
        *self.0 = Some(map.next_value()?);
        Ok(())
    }
}

impl<T> ProjectedSlot<'_, T> {
    /// Never called: the type has no `Deserialize`.
    ///
    /// # Errors
    /// Always.
    pub fn read_field<'de, A: MapAccess<'de>>(
        &self,
        _: &mut A,
        path: &'static str,
    ) -> Result<(), A::Error> {
        Err(A::Error::custom(format_args!("the type of `{path}` has no `Deserialize`")))
    }
}

/// The selected labels and annotations of a projection, which are read although the others are
/// skipped.
pub trait SelectedValues<'de> {
    /// Reads the selected values of a part of the metadata.
    ///
    /// # Errors
    /// Those of the deserializer.
    fn read<A: MapAccess<'de>>(&mut self, part: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Skips a value.
///
/// # Errors
/// Those of the deserializer.
pub fn read_nothing<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

/// The value of a selected label or annotation.
pub fn selected_value(field: &Option<String>) -> Option<&str> {
    field.as_deref()
}

/// Metadata with the selected values put back.
pub fn with_selected_values(
    metadata: &ObjectMeta,
    selected: &[(&str, &str, Option<&str>)],
) -> ObjectMeta {
    let mut metadata = metadata.clone();
    for (part, key, value) in selected {
        if let Some(value) = value {
            let texts =
                if *part == "labels" { &mut metadata.labels } else { &mut metadata.annotations };
            texts.get_or_insert_default().insert((*key).to_owned(), (*value).to_owned());
        }
    }
    metadata
}

/// Metadata without unused capacity.
pub fn shrunk(mut metadata: ObjectMeta) -> ObjectMeta {
    // Parsing leaves spare capacity, which a cache would hold for each object.
    metadata.owner_references.iter_mut().for_each(Vec::shrink_to_fit);
    metadata.finalizers.iter_mut().for_each(Vec::shrink_to_fit);
    metadata
}

/// Reads metadata without the members in `skip`, except for the values that `selected` reads of
/// them.
///
/// # Errors
/// Those of the deserializer; duplicate metadata.
pub fn read_metadata<'de, A: MapAccess<'de>>(
    map: &mut A,
    into: &mut Option<ObjectMeta>,
    skip: &'static [&'static str],
    selected: impl SelectedValues<'de>,
) -> Result<(), A::Error> {
    if into.is_some() {
        return Err(A::Error::duplicate_field("metadata"));
    }
    *into = Some(map.next_value_seed(FilteredMetadata(skip, selected))?);
    Ok(())
}

/// Writes a field.
///
/// # Errors
/// Those of the serializer.
pub fn write_field<S: SerializeMap, T: ProjectedField>(
    out: &mut S,
    name: &'static str,
    value: &T,
) -> Result<(), S::Error> {
    out.serialize_entry(name, value)
}

/// Writes a field, left out when absent.
///
/// # Errors
/// Those of the serializer.
pub fn write_optional_field<S: SerializeMap, T: ProjectedField>(
    out: &mut S,
    name: &'static str,
    value: &Option<T>,
) -> Result<(), S::Error> {
    value.as_ref().map_or(Ok(()), |value| out.serialize_entry(name, value))
}

/// Reads the members of an object.
struct MembersSeed<M>(M);

impl<'de, M: Members<'de>> DeserializeSeed<'de> for MembersSeed<M> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // The object may be null, which `deserialize_map` would refuse.
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: Members<'de>> Visitor<'de> for MembersSeed<M> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let names = self.0.names().map_err(A::Error::custom)?;
        while let Some(place) = map.next_key_seed(MemberPosition(names))? {
            match place {
                Some(place) => self.0.read(place, &mut map)?,
                // Skipped without a copy.
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Reads a name as its position in a list, without a copy.
struct MemberPosition(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for MemberPosition {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for MemberPosition {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|known| *known == name))
    }
}

/// Reads metadata without some members.
struct FilteredMetadata<P>(MemberNames, P);

impl<'de, P: SelectedValues<'de>> DeserializeSeed<'de> for FilteredMetadata<P> {
    type Value = ObjectMeta;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ObjectMeta, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, P: SelectedValues<'de>> Visitor<'de> for FilteredMetadata<P> {
    type Value = ObjectMeta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObjectMeta")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<ObjectMeta, E> {
        Ok(ObjectMeta::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ObjectMeta, A::Error> {
        // The type's own code reads the rest, from a map without the skipped members.
        let filtered = FilteredMap { map, skip: self.0, selected: self.1 };
        ObjectMeta::deserialize(serde::de::value::MapAccessDeserializer::new(filtered))
    }
}

/// A map that hides some members.
struct FilteredMap<A, P> {
    /// The map with all members.
    map: A,
    /// Names of the hidden members.
    skip: MemberNames,
    /// Reads the values of the hidden members, or skips them.
    selected: P,
}

impl<'de, A: MapAccess<'de>, P: SelectedValues<'de>> MapAccess<'de> for FilteredMap<A, P> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.map.next_key_seed(Text)? {
            if self.skip.contains(&&*name) {
                // The value has to be consumed before the next key.
                self.selected.read(&name, &mut self.map)?;
                continue;
            }
            return match name {
                Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
                Cow::Owned(name) => seed.deserialize(StringDeserializer::new(name)),
            }
            .map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A name, borrowed if possible.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}
