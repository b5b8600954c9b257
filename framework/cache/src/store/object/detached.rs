//! Index values in the bytes beside a kept object, by path.
//!
//! Only the bytes and their format. The choice of the values to keep is in
//! `index/detached_values.rs`.

use std::borrow::Cow;

/// Names from an object's root to a field.
pub(in crate::store) type Path = &'static [&'static str];

/// Values by path, in the bytes beside a kept object: empty, or JSON that this store wrote.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::store) struct DetachedIndexValues<'a>(&'a [u8]);

/// A path, and the values there.
type DetachedEntry<'a> = (Vec<Cow<'a, str>>, Vec<Cow<'a, str>>);

/// The number of an index, and the values in it.
pub(in crate::store) type IndexedValues<'a> = (usize, Vec<Cow<'a, str>>);

impl<'a> DetachedIndexValues<'a> {
    pub(in crate::store) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the recorded values of declared paths; they are complete, regardless of the rest of
    /// the kept object.
    pub(in crate::store) fn by_index(self, declared: &[(usize, Path)]) -> Vec<IndexedValues<'a>> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let entries: Vec<DetachedEntry<'a>> = serde_json::from_slice(self.0).unwrap_or_default();
        let mut indexed = Vec::new();
        for (path, values) in entries {
            let indexes = declared.iter().filter(|(_, declared)| path == *declared);
            indexed.extend(indexes.map(|(index, _)| (*index, values.clone())));
        }
        indexed
    }
}
