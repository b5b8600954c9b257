//! The bytes of some fields of an object, with index values of others behind them.

use std::fmt;

use super::buffer_pool::Buffer;
use super::detached::DetachedIndexValues;

/// The bytes of some fields, followed by index values of others.
pub(crate) struct ProjectedFields {
    pub(in crate::store) bytes: Buffer,
    /// Offset of the index values.
    detached: u32,
}

impl fmt::Debug for ProjectedFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProjectedFields({} bytes)", self.bytes.len())
    }
}

impl ProjectedFields {
    /// Builds the content of `bytes`, which have index values from the offset `detached` on.
    pub(in crate::store) fn new(bytes: Buffer, detached: u32) -> Self {
        Self { bytes, detached }
    }

    /// Returns the JSON of the fields.
    pub(in crate::store) fn body(&self) -> &[u8] {
        self.bytes.get(..self.detached as usize).unwrap_or_default()
    }

    /// Returns the index values behind the JSON.
    pub(in crate::store) fn detached(&self) -> DetachedIndexValues<'_> {
        DetachedIndexValues::of(self.bytes.get(self.detached as usize..).unwrap_or_default())
    }
}
