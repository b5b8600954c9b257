//! The fields that a type has of an object.

use crate::store::object::Path;
use windlass_core::wire::FieldMask;

/// The paths of a type's fields; the empty path means the whole object.
#[derive(Clone, Copy, Debug)]
pub(in crate::store) struct FieldPaths(pub(in crate::store) &'static [Path]);

impl FieldPaths {
    /// Whether a field lies at the path or above, so that the field's type decides about the value
    /// there.
    pub(in crate::store) fn may_have(self, path: &[&str]) -> bool {
        self.0.iter().any(|field| path.starts_with(field))
    }

    /// Returns the field at the path or above.
    pub(in crate::store) fn above(self, path: &[&str]) -> Option<Path> {
        self.0.iter().copied().find(|field| path.starts_with(field))
    }

    /// Returns the labels that have a field each; `None` when the type reads all labels.
    pub(in crate::store) fn picked_labels(self) -> Option<Vec<String>> {
        if self.may_have(&["metadata", "labels"]) {
            return None;
        }
        let picked = self.0.iter().filter_map(|field| match **field {
            ["metadata", "labels", key] => Some(key.to_owned()),
            _ => None,
        });
        Some(picked.collect())
    }

    /// Whether a field, or a part of the metadata, lies exactly at the path.
    pub(in crate::store) fn has(self, path: &[&str]) -> bool {
        let is_whole = |field: &&Path| match **field {
            [] | ["metadata", ..] => path.starts_with(field),
            field => *field == *path,
        };
        self.0.iter().any(|field| is_whole(&field))
    }
}

/// The members that are kept of a kind's objects.
#[derive(Debug)]
pub(in crate::store) struct FieldSelection {
    /// Finds the members to cut in an object's bytes.
    pub(super) mask: FieldMask,
    /// The fields of the type that they are read as.
    pub(in crate::store) fields: FieldPaths,
}

impl FieldSelection {
    /// Returns the selection for a type with these fields; `None` if the type reads everything.
    pub(in crate::store) fn of(fields: &'static [Path]) -> Option<Self> {
        Some(Self { mask: FieldMask::of(fields)?, fields: FieldPaths(fields) })
    }
}
