//! The cache: objects by key and by index, always consistent.
//!
//! Objects are stored as the compact bytes that came over the wire; an object's [`Head`] is a view
//! on them. Typed values cost ten times the memory of their bytes and most are never read, so an
//! object is decoded on its first read and the value is shared for as long as a reader holds it.
//! Indexes on field paths do not decode either.
//!
//! Writes of this process are overlaid on the state that the watch has shown, for at most 10 s, so
//! that a reconcile sees its own writes. The store does no I/O and runs no tasks: the informer
//! feeds it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::resource::{ObjectKey, Resource};

mod apply;
mod buffer_pool;
#[cfg(feature = "cold")]
mod cold;
mod content;
mod convert;
mod core;
mod decoded_cache;
mod detached_values;
mod encode;
mod hash;
mod index;
mod interned_meta;
mod invalid;
mod lister;
mod mode;
mod object;
mod object_pool;
mod own_writes;
mod postings;
mod projected;
mod reads;
mod slots;
mod snapshot_diff;
mod state;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod tombstones;
mod values;
mod version;
mod view;

pub(crate) use apply::{BatchOutcome, Event, ListGeneration, MarkKind, Observed, StreamMark};
pub(crate) use core::Core;
pub(crate) use encode::Mode;
pub use index::{Index, IndexValue};
pub use lister::{Lister, NamespaceLister};
pub use mode::{Representation, Transform};
pub(crate) use object::Object;
pub(crate) use own_writes::Unconfirmed;
pub(crate) use stats::Sizes;
pub use stats::StoreStats;
pub(crate) use version::order;
pub use view::{Snapshot, Store};

pub use crate::wire::{Head, OwnerRef};

/// A cached object: head and compact bytes, decoded on first use. Cheap to clone; a clone does not
/// change when the cache does.
pub struct Cached<K> {
    object: Arc<Object>,
    kind: PhantomData<fn() -> K>,
}

/// Error of an object whose bytes do not decode into its type. Head and raw bytes can still be
/// read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The error of serde, with the path.
    pub message: Arc<str>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object does not decode into its type: {}", self.message)
    }
}

impl std::error::Error for Invalid {}

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
    pub(crate) fn new(object: Arc<Object>) -> Self {
        Self { object, kind: PhantomData }
    }
}

impl<K: Resource> Cached<K> {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        self.object.key()
    }

    /// Metadata that is read without decoding the object.
    pub fn head(&self) -> Head<'_> {
        self.object.head()
    }

    /// Returns the object; decoded on first use and shared for as long as a caller holds it.
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
    /// encoded again, with the fields that its type has. For a projection these are its fields and
    /// the members that the head is read from; for metadata it is `{"metadata": …}`. See
    /// [`Representation`].
    pub fn raw(&self) -> Cow<'_, [u8]> {
        self.object.body()
    }

    /// Returns an annotation's value, read from the bytes, or from the decoded value where that is
    /// kept. A projection that skips annotations has those that its fields name.
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.object.annotation(key)
    }

    /// Whether the two are the same state in memory, and not just equal.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object)
    }
}
