//! Decoded values that are kept in place of their bytes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::buffer_pool::Buffer;
use super::detached::DetachedIndexValues;
use windlass_core::resource::{Resource, ResourceExt};
use windlass_core::wire::{MetadataScan, times, value_at_path};

/// A decoded value of any type.
pub(in crate::store) type SharedValue = Arc<dyn ErasedValue + Send + Sync>;

/// A decoded value without the type.
pub(crate) trait ErasedValue: Any + Send + Sync {
    /// The value as compact JSON.
    fn json(&self) -> Vec<u8>;
    /// An annotation's value.
    fn annotation(&self, key: &str) -> Option<String>;
    /// Estimated bytes of the value, for an object with this many bytes of head and body.
    fn weight(&self, head: usize, body: usize) -> usize;
}

impl<K: Resource> ErasedValue for K {
    fn json(&self) -> Vec<u8> {
        let mut bytes = times::encoded(serde_json::to_vec(self).unwrap_or_default());
        // As in all forms: the members that are equal in all objects of the kind are left out.
        if let Ok(scan) = MetadataScan::of(&bytes) {
            let compact = scan.compact();
            bytes = compact.into_vec();
        }
        bytes
    }

    fn annotation(&self, key: &str) -> Option<String> {
        let known = ResourceExt::annotation(self, key).map(str::to_owned);
        if known.is_some() || K::projection().is_none() {
            return known;
        }
        // A projection may have the annotation in a separate field, not in the metadata.
        let bytes = serde_json::to_vec(self).ok()?;
        let path = ["metadata", "annotations", key];
        serde_json::from_slice(value_at_path(&bytes, &path)?).ok()
    }

    fn weight(&self, head: usize, body: usize) -> usize {
        size_of::<K>() + if K::projection().is_some() { head } else { body }
    }
}

/// A decoded value that is kept, and the head that was read from the object's bytes.
pub(crate) struct DecodedObject {
    /// The head, followed by index values of fields that the value lacks.
    pub(in crate::store) head: Buffer,
    /// Labels, finalizers and owners, shared with other objects.
    pub(in crate::store) common: Arc<Box<[u8]>>,
    value: SharedValue,
    /// Estimated bytes beside the head: the struct and, for its texts, those of the JSON.
    pub(in crate::store) weight: u32,
    /// Offset of the index values.
    detached: u32,
}

impl fmt::Debug for DecodedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept(about {} bytes)", self.weight)
    }
}

impl DecodedObject {
    /// Builds the content of `value`; `head` has index values from the offset `detached` on.
    pub(in crate::store) fn new(
        head: Buffer,
        common: Arc<Box<[u8]>>,
        value: SharedValue,
        weight: usize,
        detached: usize,
    ) -> Self {
        let short = |length| u32::try_from(length).unwrap_or(u32::MAX);
        Self { head, common, value, weight: short(weight), detached: short(detached) }
    }

    /// Returns the value, if it is a `K`.
    pub(in crate::store) fn value<K: Resource>(&self) -> Option<Arc<K>> {
        let any: Arc<dyn Any + Send + Sync> =
            Arc::<dyn ErasedValue + Send + Sync>::clone(&self.value);
        any.downcast().ok()
    }

    pub(in crate::store) fn json(&self) -> Vec<u8> {
        self.value.json()
    }

    pub(in crate::store) fn annotation(&self, key: &str) -> Option<String> {
        self.value.annotation(key)
    }

    pub(in crate::store) fn detached(&self) -> DetachedIndexValues<'_> {
        DetachedIndexValues::of(self.head.get(self.detached as usize..).unwrap_or_default())
    }
}
