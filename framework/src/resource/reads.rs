//! Finds out which fields a type reads, from its own `Deserialize` and without an object.
//!
//! A type has no list of its fields, but its `Deserialize` shows how it treats a member: unknown
//! members are ignored. So the type is given an object with one member on each level, along a
//! path; the type that it requests at the end of the path is the answer. This takes a
//! microsecond, once for each path, and nothing for each object.
//!
//! Not here: the paths of a projection (`Resource::projected`), and reading real objects.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use crate::wire::{Ask, Fault};

/// Treatment of the value at a path by a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The type reads a value, or a list of values.
    Value,
    /// The type reads an object, which has members and is no value itself.
    Object,
    /// The type has no such field.
    Nothing,
    /// The type gives no answer: it looks at a value before it decides (`flatten`, `untagged`), or
    /// reads by code of its own.
    Unknown,
}

/// `expecting` text of a type that keeps every JSON: `serde_json::Value`.
const ANYTHING: &str = "any valid JSON value";
/// `expecting` text of serde's buffer, which is read before the field is decided: `flatten`,
/// `untagged`.
const LATER: &str = "any value";
/// `expecting` text of projections for the objects on the way to their fields, which may be null.
pub(crate) const OBJECT: &str = "an object";
/// Deepest nesting of types without a step of the path between them.
const DEEPEST: usize = 64;

/// Returns how `T` treats the value at `path`. Lists along the path fan out, as for an index.
pub(crate) fn reads<T: DeserializeOwned>(path: &[&str]) -> Reads {
    let found = Cell::new(None);
    let probe = Probe { path, depth: DEEPEST, found: &found };
    // A user's `Deserialize` may panic: the path counts as unknown then.
    let outcome = catch_unwind(AssertUnwindSafe(|| T::deserialize(Ask::Path(probe)).map(drop)));
    match (found.get(), outcome) {
        (Some(found), _) => found,
        (None, Ok(Err(fault))) if fault.is_unknown_field => Reads::Nothing,
        (None, _) => Reads::Unknown,
    }
}

/// The value at the beginning of a path. The first answer ends the reading of the type: it is
/// stored in `found`, and the error that ends the reading carries nothing.
#[derive(Clone, Copy)]
pub(crate) struct Probe<'a> {
    path: &'a [&'a str],
    depth: usize,
    found: &'a Cell<Option<Reads>>,
}

impl<'a> Probe<'a> {
    /// Stores the answer and ends the reading.
    fn stop<V>(self, found: Reads) -> Result<V, Fault> {
        self.found.set(Some(found));
        Err(Fault::default())
    }

    /// The type requests something that can only be a value.
    pub(crate) fn value<V>(self) -> Result<V, Fault> {
        self.stop(if self.path.is_empty() { Reads::Value } else { Reads::Nothing })
    }

    /// The type ignores the value.
    pub(crate) fn nothing<V>(self) -> Result<V, Fault> {
        self.stop(Reads::Nothing)
    }

    /// The type requests a variant: a name alone, or an object under the name of the variant.
    pub(crate) fn variant<V>(self) -> Result<V, Fault> {
        self.stop(if self.path.is_empty() { Reads::Value } else { Reads::Unknown })
    }

    /// The type takes any value, and names the `expected` one: ends the reading unless that is an
    /// object.
    pub(crate) fn undecided(self, expected: &str) -> Result<(), Fault> {
        match (expected, self.path) {
            (OBJECT, _) => Ok(()),
            (LATER, _) => self.stop(Reads::Unknown),
            (ANYTHING, _) | (_, []) => self.stop(Reads::Value),
            _ => self.stop(Reads::Unknown),
        }
    }

    /// The same position in a nested type.
    pub(crate) fn deeper(self) -> Result<Self, Fault> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            // A type that contains itself would never end.
            None => self.stop(Reads::Unknown),
        }
    }

    /// Returns the next step of the path, and the position behind it.
    pub(crate) fn step(self) -> Result<(&'a str, Self), Fault> {
        match self.path.split_first() {
            Some((step, rest)) => Ok((step, Self { path: rest, depth: DEEPEST, ..self })),
            None => self.stop(Reads::Object),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
    use serde::{Deserialize, Deserializer};
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
