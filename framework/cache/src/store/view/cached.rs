//! A typed handle to a cached object.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::store::object::{FieldTree, Invalid, Object};
use windlass_core::resource::{ObjectKey, Resource};
use windlass_core::wire::MetadataRef;

/// A cached object: metadata and compact bytes, decoded on first use. Cheap to clone; a clone does
/// not change when the cache does.
///
/// A reader that holds such a handle keeps the version alive, also after the cache has dropped the
/// object.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::store::Cached;
///
/// /// Reads the data of maps of one application, and decodes no other map.
/// fn size(map: &Cached<ConfigMap>) -> usize {
///     if map.metadata().label("app") != Some("web") {
///         return 0;
///     }
///     // An object that does not decode counts as empty here.
///     map.get().ok().and_then(|map| map.data.as_ref().map(|data| data.len())).unwrap_or(0)
/// }
/// # let _ = size;
/// ```
pub struct Cached<K> {
    /// The cached version, shared with the store.
    pub(in crate::store) object: Arc<Object>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.object))
    }
}

/// Key and version only: the content may be a Secret's.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.object.key(), self.object.version())
    }
}

impl<K> Cached<K> {
    #[doc(hidden)]
    pub fn new(object: Arc<Object>) -> Self {
        Self { object, kind: PhantomData }
    }
}

impl<K: Resource> Cached<K> {
    /// Returns namespace and name.
    pub fn key(&self) -> &ObjectKey {
        self.object.key()
    }

    /// Returns the metadata that are read without decoding the object.
    pub fn metadata(&self) -> MetadataRef<'_> {
        self.object.metadata()
    }

    /// Returns the object; decoded on first use and shared for as long as a caller holds the value.
    ///
    /// # Errors
    /// [`Invalid`] when the bytes do not decode into `K`; logged once and counted by the informer.
    pub fn get(&self) -> Result<Arc<K>, Invalid> {
        self.object.decode()
    }

    /// Returns the compact JSON: the server's bytes without `apiVersion`, `kind` and
    /// `metadata.managedFields`.
    ///
    /// A cold object is decompressed (2 µs for a Pod), and an object that is kept decoded is
    /// encoded again, with the fields that the type has. For a projection these are the
    /// projection's fields and the members that the metadata are read from; for metadata the result
    /// is `{"metadata": …}`. See [`Representation`](crate::store::Representation).
    pub fn raw(&self) -> Cow<'_, [u8]> {
        self.object.body()
    }

    /// Returns an annotation's value, read from the bytes, or from the decoded value where that is
    /// kept. A projection that skips annotations has those that the projection's fields name.
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.object.annotation(key)
    }

    /// Returns the fields that this field manager has applied to the object, if the cache keeps
    /// them: see `Informer::keep_applied_fields`.
    #[doc(hidden)]
    pub fn applied_fields(&self, manager: &str) -> Option<FieldTree> {
        self.object.applied_fields(manager)
    }

    /// Returns the number of this state in memory; no other state in the store has it, of this
    /// object or of another one.
    #[doc(hidden)]
    pub fn serial(&self) -> u64 {
        self.object.serial()
    }

    /// Whether the two are the same state in memory, and not just equal.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object)
    }
}
