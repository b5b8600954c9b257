//! Paths of fields as Rust: `path!(Website: spec.template.replicas)`.
//!
//! The macro generates a walk: a function that goes from the object to the field by references, so
//! that the compiler checks each segment. The same function, run without an object, collects the
//! names of the fields in JSON, which depend on the types on the way ([`names`]).

// DESIGN.md, 133: A path is a walk over references

mod fields;
mod leaf;
mod names;
mod segment;
#[cfg(test)]
mod tests;
mod walk;

pub use fields::{FieldName, FieldNames};
pub use leaf::{
    AnyClass, AnyJson, JsonBoolean, JsonList, JsonMap, JsonNumber, JsonText, MayBeScalar, NoScalar,
    OfAnyClass, ReadsAs, Replicas, ScalarClass, SelectorText, reads, replicas, scalar,
    selector_text,
};
pub use names::{Declared, FieldSource, JsonName, Probed, TypeOf, Undeclared};
pub use segment::Segment;
pub(crate) use segment::{json_path, parsed, parsed_column};
pub use walk::{FieldRef, Inner, Items, Keys, ListItems, MapEntries, SameAs, Walk};

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// Function that goes from an object to a field.
pub type WalkFn<K, V> = for<'a> fn(Walk<'a, K>) -> Walk<'a, V>;

/// The path of a field of `K` whose value is a `V`; made by `windlass::path!`.
///
/// The compiler has checked the path: each segment is a field of the preceding type. Options and
/// boxes on the way are passed automatically, and are no part of `V`. The names in JSON are found
/// when they are asked for.
///
/// `path!(Website: spec.ports[].number)` leads to each element of a list or value of a map,
/// `spec.ports[0].number` to a single element, and `metadata.labels["app"]` to a single value of a
/// map.
///
/// ```ignore
/// let replicas = windlass::path!(Website: spec.template.replicas);
/// assert_eq!(replicas.json_path()?, ".spec.template.replicas");
/// assert_eq!(replicas.get(&site), Some(&3));
/// ```
pub struct FieldPath<K, V> {
    /// The generated walk.
    walk: WalkFn<K, V>,
}

impl<K, V> Clone for FieldPath<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for FieldPath<K, V> {}

impl<K, V> fmt::Debug for FieldPath<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.json_path().unwrap_or_else(|error| error.to_string()))
    }
}

impl<K, V> FieldPath<K, V> {
    /// Creates a path of a generated walk.
    #[doc(hidden)]
    pub const fn of(walk: WalkFn<K, V>) -> Self {
        Self { walk }
    }

    /// Returns the segments of the path, with names as they are in JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when a type on the way does not show the names: the type implements
    /// `Deserialize` by hand or with serde's `flatten`, and does not derive `Schema`.
    pub fn segments(&self) -> Result<Vec<Segment>, Error> {
        (self.walk)(Walk::types()).segments().map_err(|why| {
            let message = format!("cannot name a field of {} in JSON: {why}", short_name::<K>());
            Error::new(ErrorKind::Usage, message)
        })
    }

    /// Returns the path in the notation of kubectl and columns: `.spec.template.replicas`,
    /// `.spec.ports[*].number`, `.metadata.labels.app`.
    ///
    /// # Errors
    /// As [`segments`](Self::segments).
    pub fn json_path(&self) -> Result<String, Error> {
        self.segments().map(|segments| json_path(&segments))
    }

    /// Returns the path as a JSON pointer (RFC 6901), for JSON patches: `/spec/template/replicas`.
    ///
    /// # Errors
    /// As [`segments`](Self::segments); and [`ErrorKind::Usage`] when the path leads to each
    /// element of a list: a pointer names a single value.
    pub fn json_pointer(&self) -> Result<String, Error> {
        let segments = self.segments()?;
        segment::json_pointer(&segments).ok_or_else(|| {
            let path = json_path(&segments);
            let message = format!(
                "cannot write `{path}` as a JSON pointer: it leads to each element, and a pointer \
                 names one; write the number of the element, as in `ports[0]`"
            );
            Error::new(ErrorKind::Usage, message)
        })
    }

    /// Returns the value in `object`, if the object has such a value; of several the first.
    pub fn get<'a>(&self, object: &'a K) -> Option<&'a V> {
        (self.walk)(Walk::of(object)).into_values().into_iter().next()
    }

    /// Returns each value in `object`: at most one, or several behind `[]`.
    pub fn values<'a>(&self, object: &'a K) -> Vec<&'a V> {
        (self.walk)(Walk::of(object)).into_values()
    }
}

impl<K, V: Serialize> FieldPath<K, V> {
    /// Returns a field selector for the objects that have `value` here: `spec.host=a.example`. The
    /// value is compared as serde writes it: a variant by its name in JSON.
    ///
    /// API servers select by the `selectable` fields of a kind only, and by `metadata.name` and
    /// `metadata.namespace`.
    ///
    /// # Errors
    /// As [`segments`](Self::segments); [`ErrorKind::Usage`] for a value that is no text, number or
    /// boolean in JSON.
    pub fn equals(&self, value: impl Into<V>) -> Result<String, Error> {
        self.selector("=", &value.into())
    }

    /// Returns a field selector for the objects that have another value here:
    /// `spec.host!=a.example`.
    ///
    /// # Errors
    /// As [`equals`](Self::equals).
    pub fn not_equals(&self, value: impl Into<V>) -> Result<String, Error> {
        self.selector("!=", &value.into())
    }

    fn selector(&self, operator: &str, value: &V) -> Result<String, Error> {
        let path = self.json_path()?;
        if !self.segments()?.iter().all(|segment| matches!(segment, Segment::Field(_))) {
            let text = format!(
                "cannot select by `{path}`: it leads into a list, and API servers select by single fields"
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let value = match serde_json::to_value(value) {
            Ok(Value::String(text)) => text,
            Ok(scalar @ (Value::Number(_) | Value::Bool(_))) => scalar.to_string(),
            Ok(_) => {
                let text = format!(
                    "cannot select by `{path}`: the value is no text, number or boolean in JSON; select by a field \
                     inside, which `selectable` names"
                );
                return Err(Error::new(ErrorKind::Usage, text));
            }
            Err(error) => {
                let text = format!("cannot select by `{path}`: the value does not encode");
                return Err(Error::new(ErrorKind::Usage, text).because(error));
            }
        };
        let mut text = format!("{}{operator}", path.trim_start_matches('.'));
        for c in value.chars() {
            // The characters that separate the parts of a selector.
            if matches!(c, '\\' | ',' | '=') {
                text.push('\\');
            }
            text.push(c);
        }
        Ok(text)
    }
}

/// Returns the name of a type without the names of modules.
pub(crate) fn short_name<T: ?Sized>() -> String {
    let full = std::any::type_name::<T>();
    let mut short = String::with_capacity(full.len());
    let mut word = String::new();
    for c in full.chars() {
        match c {
            ':' => word.clear(),
            c if c.is_alphanumeric() || c == '_' => word.push(c),
            c => {
                short.push_str(&word);
                word.clear();
                short.push(c);
            }
        }
    }
    short + &word
}
