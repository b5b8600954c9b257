//! Which fields a type reads, asked of its own `Deserialize` and without an object.
//!
//! A type does not say which fields it has, but it says what it does with a member: one that it does
//! not know it ignores. So it is shown an object that has one member on each level, along a path, and
//! what it asks for at the end of the path is the answer. A microsecond, once for each path; nothing is
//! asked for each object.
//!
//! Not here: what a projection names (`Resource::projected`), and reading real objects.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};

/// What a type does with what stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// It reads a value, or a list of values.
    Value,
    /// It reads an object, which has members and is no value itself.
    Object,
    /// It has no such field.
    Nothing,
    /// It cannot be asked: it looks at a value before it decides (`flatten`, `untagged`), or reads by
    /// code of its own.
    Unknown,
}

/// How a type expects what keeps every JSON, whatever it is: `serde_json::Value`.
const ANYTHING: &str = "any valid JSON value";
/// How what serde reads ahead is expected, before it is decided which field has it: `flatten`, `untagged`.
const LATER: &str = "any value";
/// How projections expect the objects on the way to their fields, which may be null.
pub(crate) const OBJECT: &str = "an object";
/// How deep types may lie in each other without a step of the path between them.
const DEEPEST: usize = 64;

/// What `T` does with what stands at `path`. Lists along the path fan out, as for an index.
pub(crate) fn reads<T: DeserializeOwned>(path: &[&str]) -> Reads {
    let found = Cell::new(None);
    let probe = Probe { path, depth: DEEPEST, found: &found };
    // Its code may be a user's.
    let outcome = catch_unwind(AssertUnwindSafe(|| T::deserialize(probe).map(drop)));
    match (found.get(), outcome) {
        (Some(found), _) => found,
        (None, Ok(Err(Stop::NoField))) => Reads::Nothing,
        (None, _) => Reads::Unknown,
    }
}

/// Why reading ended; what was found is told elsewhere.
#[derive(Debug)]
enum Stop {
    /// The type refuses members that it does not know.
    NoField,
    Other,
}

impl Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type was only asked what it reads")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self::Other
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::NoField
    }
}

/// The value at the beginning of a path.
#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [&'a str],
    depth: usize,
    found: &'a Cell<Option<Reads>>,
}

impl<'a> Probe<'a> {
    fn stop<V>(self, found: Reads) -> Result<V, Stop> {
        self.found.set(Some(found));
        Err(Stop::Other)
    }

    /// What can only be a value is asked for.
    fn value<V>(self) -> Result<V, Stop> {
        self.stop(if self.path.is_empty() { Reads::Value } else { Reads::Nothing })
    }

    /// The same place in another type.
    fn deeper(self) -> Result<Self, Stop> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => self.stop(Reads::Unknown),
        }
    }

    fn object<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.path.split_first() {
            Some((step, rest)) => {
                let below = Probe { path: rest, depth: DEEPEST, found: self.found };
                visitor.visit_map(OneMember { step: Some(step), below })
            }
            None => self.stop(Reads::Object),
        }
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(OneElement(Some(self.deeper()?)))
    }
}

/// What asks for one scalar.
macro_rules! values {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
            self.value()
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    values! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string
        deserialize_bytes deserialize_byte_buf deserialize_identifier
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        let expected: &dyn Expected = &visitor;
        match (expected.to_string().as_str(), self.path) {
            (OBJECT, _) => self.object(visitor),
            (LATER, _) => self.stop(Reads::Unknown),
            (ANYTHING, _) | (_, []) => self.stop(Reads::Value),
            _ => self.stop(Reads::Unknown),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        self.stop(Reads::Nothing)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
        self.stop(Reads::Nothing)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: V,
    ) -> Result<V::Value, Stop> {
        self.stop(Reads::Nothing)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self.deeper()?)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self.deeper()?)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.list(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Stop> {
        self.list(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.list(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        self.object(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        self.object(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        // A name alone, or an object under the name of the variant.
        self.stop(if self.path.is_empty() { Reads::Value } else { Reads::Unknown })
    }
}

/// An object with the next step of the path, and nothing else.
struct OneMember<'a> {
    step: Option<&'a str>,
    below: Probe<'a>,
}

impl<'de> MapAccess<'de> for OneMember<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        let Some(step) = self.step.take() else { return Ok(None) };
        let name: StrDeserializer<'_, Stop> = step.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        seed.deserialize(self.below)
    }
}

/// A list with one element.
struct OneElement<'a>(Option<Probe<'a>>);

impl<'de> SeqAccess<'de> for OneElement<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Stop> {
        self.0.take().map(|probe| seed.deserialize(probe)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;
    use crate::resource::{DynamicObject, PartialObject};

    #[test]
    fn a_type_of_kubernetes_says_what_it_reads() {
        for (path, expected) in [
            (&["spec", "nodeName"][..], Reads::Value),
            (&["spec", "nodename"], Reads::Nothing),
            (&["spec", "containers", "image"], Reads::Value),
            (&["spec", "containers", "imag"], Reads::Nothing),
            (&["spec", "containers", "command"], Reads::Value),
            (&["spec", "containers"], Reads::Object),
            (&["spec", "containers", "livenessProbe", "httpGet", "port"], Reads::Value),
            (&["spec", "nodeName", "x"], Reads::Nothing),
            (&["metadata", "labels", "app"], Reads::Value),
            (&["metadata", "labels"], Reads::Object),
            (&["metadata", "creationTimestamp"], Reads::Value),
            (&["metadata", "ownerReferences", "uid"], Reads::Value),
            (&["status", "podIP"], Reads::Value),
            (&["status", "podIp"], Reads::Nothing),
            (&["data"], Reads::Nothing),
            (&[], Reads::Object),
        ] {
            assert_eq!(reads::<Pod>(path), expected, "{path:?}");
        }
        assert_eq!(reads::<ConfigMap>(&["data", "any"]), Reads::Value);
        assert_eq!(reads::<Service>(&["spec", "ports", "targetPort"]), Reads::Value);
        assert_eq!(reads::<PartialObject>(&["spec", "nodeName"]), Reads::Nothing);
        assert_eq!(reads::<PartialObject>(&["metadata", "name"]), Reads::Value);
        assert_eq!(reads::<DynamicObject>(&["spec", "nodeName"]), Reads::Unknown);
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[allow(dead_code)]
    struct Own {
        #[serde(alias = "formerName")]
        renamed_here: Option<Vec<Option<u8>>>,
        #[serde(skip)]
        hidden: u8,
        any: Value,
        level: Level,
        either: Either,
        strict: Strict,
        map: BTreeMap<String, Vec<Strict>>,
        pair: (u8, String),
        endless: Endless,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Flat {
        own: u8,
        #[serde(flatten)]
        rest: Strict,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    enum Level {
        High,
        Low { by: u8 },
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Either {
        Name(String),
        Named { name: String },
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Strict {
        name: String,
    }

    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct Endless(Vec<Self>);

    #[test]
    fn so_does_a_derived_one_whatever_serde_was_told() {
        for (path, expected) in [
            (&["renamedHere"][..], Reads::Value),
            (&["formerName"], Reads::Value),
            (&["renamed_here"], Reads::Nothing),
            (&["hidden"], Reads::Nothing),
            (&["any", "thing", "below"], Reads::Value),
            (&["level"], Reads::Value),
            (&["level", "Low", "by"], Reads::Unknown),
            (&["either"], Reads::Unknown),
            (&["either", "name"], Reads::Unknown),
            (&["strict", "name"], Reads::Value),
            (&["strict", "other"], Reads::Nothing),
            (&["map", "any", "name"], Reads::Value),
            (&["map", "any"], Reads::Object),
            (&["pair"], Reads::Value),
            (&["endless"], Reads::Unknown),
        ] {
            assert_eq!(reads::<Own>(path), expected, "{path:?}");
        }
    }

    #[test]
    fn one_that_is_flattened_into_another_cannot_be_asked() {
        for path in [&["name"][..], &["other"], &["name", "below"]] {
            assert_eq!(reads::<Flat>(path), Reads::Unknown, "{path:?}");
        }
        assert_eq!(reads::<Flat>(&["own"]), Reads::Value);
    }

    struct Panics;

    impl<'de> Deserialize<'de> for Panics {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            std::panic::resume_unwind(Box::new("it panics"))
        }
    }

    #[test]
    fn one_that_panics_cannot_be_asked() {
        assert_eq!(reads::<Panics>(&["a"]), Reads::Unknown);
    }
}
