//! The stored content of an object, by representation.
//!
//! Every variant holds the bytes that the object's offsets point into, so uid, version, labels,
//! owners and annotations are read in the same way.

use std::borrow::Cow;

use super::buffer_pool::Buffer;
#[cfg(feature = "cold")]
use super::cold::Cold;
use super::decoded::DecodedObject;
use super::projected_fields::ProjectedFields;

/// The stored content of an object. Variants other than the default are boxed: the enum is as large
/// as a buffer.
#[derive(Debug)]
pub(crate) enum ObjectContent {
    /// The compact JSON; the offsets point into the buffer.
    Compact(Buffer),
    /// The compact JSON of some fields, and index values of others.
    Projected(Box<ProjectedFields>),
    /// The decoded value, and the bytes of the metadata.
    DecodedObject(Box<DecodedObject>),
    /// Compressed, behind the bytes of the metadata.
    #[cfg(feature = "cold")]
    Cold(Box<Cold>),
}

/// Empty content.
impl Default for ObjectContent {
    fn default() -> Self {
        Self::Compact(Buffer::default())
    }
}

impl ObjectContent {
    /// Returns the bytes that the offsets point into: for uid, resourceVersion and annotations,
    /// and for labels, finalizers and owners.
    pub(crate) fn head_bytes(&self) -> (&[u8], &[u8]) {
        match self {
            Self::Compact(bytes) => (bytes, bytes),
            Self::Projected(part) => (part.body(), part.body()),
            Self::DecodedObject(kept) => (&kept.head, &kept.common),
            #[cfg(feature = "cold")]
            Self::Cold(cold) => (cold.head(), cold.common()),
        }
    }

    /// Whether the two are equal byte by byte. False for forms whose comparison is not cheap.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Compact(one), Self::Compact(other)) => **one == **other,
            (Self::Projected(one), Self::Projected(other)) => *one.bytes == *other.bytes,
            _ => false,
        }
    }

    /// Returns the object as JSON, as far as kept.
    pub(crate) fn body(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Compact(bytes) => Cow::Borrowed(bytes),
            Self::Projected(part) => Cow::Borrowed(part.body()),
            Self::DecodedObject(kept) => Cow::Owned(kept.json()),
            #[cfg(feature = "cold")]
            Self::Cold(cold) => Cow::Owned(cold.unpacked()),
        }
    }

    /// Bytes of payload; an estimate for a decoded value.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Compact(bytes) => bytes.len(),
            Self::Projected(part) => part.bytes.len(),
            Self::DecodedObject(kept) => kept.head.len() + kept.weight as usize,
            #[cfg(feature = "cold")]
            Self::Cold(cold) => cold.bytes.len(),
        }
    }

    /// Bytes that the payload takes up, spare capacity included.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Compact(bytes) => bytes.capacity(),
            Self::Projected(part) => part.bytes.capacity() + size_of::<ProjectedFields>(),
            Self::DecodedObject(kept) => {
                kept.head.capacity() + size_of::<DecodedObject>() + kept.weight as usize
            }
            #[cfg(feature = "cold")]
            Self::Cold(cold) => cold.bytes.capacity() + size_of::<Cold>(),
        }
    }

    /// Takes out the buffer of the store's memory; the content must not be read any more.
    pub(crate) fn take_buffer(&mut self) -> Buffer {
        match self {
            Self::Compact(bytes) => std::mem::take(bytes),
            Self::Projected(part) => std::mem::take(&mut part.bytes),
            Self::DecodedObject(kept) => std::mem::take(&mut kept.head),
            #[cfg(feature = "cold")]
            Self::Cold(cold) => std::mem::take(&mut cold.bytes),
        }
    }
}
