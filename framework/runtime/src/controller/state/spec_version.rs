//! Version of an object's spec as a number: another number means another spec.
//!
//! Reconciles that repeat without such a change are a loop, and a reconcile with such a change
//! works on an outdated state. API servers count these changes in `metadata.generation`; for kinds
//! without a generation (`ConfigMap`s) the number is a hash of everything but `metadata` and
//! `status`.
//!
//! Not included: the content of a change; see [`changes`](super::changes).

// DESIGN.md, 47: Spec changes are detected by `metadata.generation` or a content hash

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use serde_json::value::RawValue;

use windlass_cache::store::{Cached, MetadataRef, Object};

/// Version of an object's spec: a hash of the uid, the deletion mark, and the generation or the
/// content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpecVersion(u64);

impl SpecVersion {
    pub(crate) fn of<K: windlass_core::resource::Resource>(object: &Cached<K>) -> Self {
        Self::new(&object.metadata(), || object.raw())
    }

    pub(crate) fn of_object(object: &Object) -> Self {
        Self::new(&object.metadata(), || object.body())
    }

    fn new<'a>(metadata: &MetadataRef<'_>, body: impl FnOnce() -> Cow<'a, [u8]>) -> Self {
        let mut hasher = FixedState::with_seed(0).build_hasher();
        (metadata.uid(), metadata.is_terminating(), metadata.generation()).hash(&mut hasher);
        // Servers count generations from 1, so 0 means that the kind has none.
        if metadata.generation() == 0 {
            hash_content(&body(), &mut hasher);
        }
        Self(hasher.finish())
    }

    #[cfg(test)]
    pub(crate) fn test(number: u64) -> Self {
        Self(number)
    }
}

/// Hashes all top-level fields but `metadata` and `status`, in the order of their names.
fn hash_content(body: &[u8], hasher: &mut impl Hasher) {
    let parts: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(body).unwrap_or_default();
    for (name, part) in parts {
        if name != "metadata" && name != "status" {
            (name, part.get()).hash(hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(body: &str) -> u64 {
        let mut hasher = FixedState::with_seed(0).build_hasher();
        hash_content(body.as_bytes(), &mut hasher);
        hasher.finish()
    }

    #[test]
    fn of_a_kind_without_generation_all_but_metadata_and_status_counts() {
        let one = content(r#"{"metadata":{"resourceVersion":"1"},"data":{"a":"b"},"status":{}}"#);
        let same =
            content(r#"{"data":{"a":"b"},"metadata":{"labels":{"x":"y"}},"status":{"n":1}}"#);
        let other = content(r#"{"metadata":{"resourceVersion":"1"},"data":{"a":"c"},"status":{}}"#);
        assert_eq!(one, same);
        assert_ne!(one, other);
    }

    #[test]
    fn a_value_that_is_no_object_counts_as_empty() {
        assert_eq!(content("garbage"), content("{}"));
    }
}
