//! A stored object.

use serde_json::Value;

/// A stored object; immutable.
pub(crate) struct StoredObject {
    /// The whole object in the storage version, with the resourceVersion.
    pub(crate) value: Value,
    /// Revision of the write that made this state.
    pub(crate) revision: u64,
    /// Whether that write created the object; unknown, and false, for objects of a data file or a
    /// backup.
    pub(crate) is_first: bool,
    /// Bytes of memory, about.
    pub(super) size: usize,
}

impl StoredObject {
    /// Returns an object with its size.
    pub(crate) fn new(value: Value, revision: u64) -> Self {
        let size = size(&value);
        Self { value, revision, is_first: false, size }
    }
}

/// Returns the bytes of memory of a value, about. The recursion is as deep as the value, whose
/// depth the parsers bound.
pub(crate) fn size(value: &Value) -> usize {
    const SLOT: usize = size_of::<Value>();
    match value {
        Value::String(text) => SLOT + text.len(),
        Value::Array(items) => SLOT + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => {
            SLOT + fields.iter().map(|(key, value)| 24 + key.len() + size(value)).sum::<usize>()
        }
        _ => SLOT,
    }
}

/// Shows the revision only: the value may be a Secret's, and backups hold all of them.
impl std::fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredObject").field("revision", &self.revision).finish_non_exhaustive()
    }
}
