//! Names of the fields in the status of a kind, found by a read without a value.

use std::cell::Cell;

use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};

/// Names of the fields, in a cell because the read that finds them always fails.
type NamesCell<'a> = &'a Cell<&'static [&'static str]>;

/// A deserializer without a value, which notes the names that a struct asks for.
struct NameRecorder<'a>(NamesCell<'a>);

/// Returns the names of the fields in the status of kind `K`, as they are in JSON. Empty for a kind
/// without a status, and for a status that is not read field by field (serde's `flatten`, a read by
/// hand).
pub fn status_fields<K: DeserializeOwned>() -> &'static [&'static str] {
    let names = Cell::new([].as_slice());
    let object = [("status", NameRecorder(&names))].into_iter();
    drop(K::deserialize(MapDeserializer::<_, Error>::new(object)));
    names.get()
}

impl<'de> IntoDeserializer<'de, Error> for NameRecorder<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for NameRecorder<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("a probe holds no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        self.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn the_fields_of_a_status_are_found_by_their_names_in_json() {
        let fields = status_fields::<Deployment>();
        assert!(fields.contains(&"observedGeneration") && fields.contains(&"conditions"));
        assert_eq!(status_fields::<ConfigMap>(), [""; 0]);
    }
}
