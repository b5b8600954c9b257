//! What is kept of an object, by representation.
//!
//! Whatever it is, it holds the bytes that the object's outline points into, so that head, labels,
//! owners and annotations are read the same way in all of them.

use std::borrow::Cow;

use super::memory::Buffer;

/// What is kept of an object.
#[derive(Debug)]
pub(crate) enum Content {
    /// The compact JSON; the outline points into it.
    Compact(Buffer),
}

impl Content {
    /// The bytes that the outline points into.
    pub(crate) fn head_bytes(&self) -> &[u8] {
        match self {
            Self::Compact(bytes) => bytes,
        }
    }

    /// The object as JSON, as far as it is kept.
    pub(crate) fn body(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Compact(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// Bytes of payload.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Compact(bytes) => bytes.len(),
        }
    }

    /// Bytes that the payload takes up.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Compact(bytes) => bytes.capacity(),
        }
    }

    /// Takes out the buffers of the store's memory; nothing reads this content any more.
    pub(crate) fn take_buffer(&mut self) -> Buffer {
        match self {
            Self::Compact(bytes) => std::mem::take(bytes),
        }
    }
}
