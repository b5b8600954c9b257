//! The cache: objects by key and by index, always consistent.
//!
//! An object is kept as the compact bytes that came over the wire; its [`Head`] is a view on them. It
//! is decoded when somebody reads it, and shared while anyone holds it, because typed values cost ten
//! times the memory of their bytes and most are never read. Indexes on field paths do not decode
//! either.
//!
//! What this process has written is laid over what the watch has shown, for at most 10 s, so that a
//! reconcile sees its own writes. No I/O, no tasks: the informer feeds it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::resource::{ObjectKey, Resource, Selector};

mod apply;
mod content;
mod core;
mod index;
mod memory;
mod mode;
mod object;
mod own;
mod shares;
#[cfg(test)]
mod tests;
mod version;

pub(crate) use apply::{Applied, Event, Mark, Milestone, Run, Sighting};
pub(crate) use core::Core;
pub use index::{Index, IndexValue};
pub use mode::{Representation, Transform};
pub(crate) use object::Object;
pub(crate) use version::order;

pub use crate::wire::{Head, OwnerRef};

/// A read view of the cached objects of one kind; cheap to clone. Each call answers from one moment.
pub struct Store<K> {
    core: Arc<Core>,
    /// Keeps going what keeps it in step.
    holder: Option<Arc<dyn Any + Send + Sync>>,
    kind: PhantomData<fn() -> K>,
}

/// A cached object: head and compact bytes, decoded on first use. Cheap to clone; it does not change
/// when the cache does.
pub struct Cached<K> {
    object: Arc<Object>,
    kind: PhantomData<fn() -> K>,
}

/// The object's bytes do not decode into its type; head and raw bytes are still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What serde said, with the path.
    pub message: Arc<str>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object does not decode into its type: {}", self.message)
    }
}

impl std::error::Error for Invalid {}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), holder: self.holder.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({}, {} objects)", self.core.info(), self.core.len())
    }
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

impl<K: Resource> Store<K> {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, holder: None, kind: PhantomData }
    }

    /// Holds `holder` for as long as it or a clone of it lives.
    pub(crate) fn held_by(self, holder: Arc<dyn Any + Send + Sync>) -> Self {
        Self { holder: Some(holder), ..self }
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get(key).map(Cached::new)
    }

    /// All objects, in key order.
    pub fn list(&self) -> Vec<Cached<K>> {
        cached(self.core.collect(None, &|_| true))
    }

    /// The objects of a namespace (`None`: all) that `labels` matches, in key order.
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        let everything = labels.is_empty();
        cached(self.core.collect(namespace, &|object| {
            everything || labels.matches_with(&|key| object.head().label(key))
        }))
    }

    /// The objects whose index value is `value`, in key order. An index that the store does not have
    /// yet is built by this call and kept.
    pub fn by_index<V: IndexValue, Q: ?Sized + ToString>(
        &self,
        index: Index<K, V>,
        value: &Q,
    ) -> Vec<Cached<K>> {
        let (id, term) = (index.id(), value.to_string());
        if let Some(found) = self.core.lookup(id, &term) {
            return cached(found);
        }
        self.ensure_index(index);
        cached(self.core.lookup(id, &term).unwrap_or_default())
    }

    /// Builds an index now, so that no lookup has to.
    pub fn ensure_index<V: IndexValue>(&self, index: Index<K, V>) {
        self.core.ensure_index(index.id(), &index.evaluator());
    }

    /// The objects with an owner reference to this uid, in key order; an index like any other.
    pub fn owned_by(&self, uid: &str) -> Vec<Cached<K>> {
        let owner: Index<K, String> =
            Index::on_path("owner", &["metadata", "ownerReferences", "uid"]);
        self.by_index(owner, uid)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.core.len()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Did this process write the object more than 10 s ago, and the watch has not shown it yet?
    /// What [`get`](Self::get) returns is then older than that write.
    pub fn is_stale(&self, key: &ObjectKey) -> bool {
        self.core.is_stale(key)
    }

    /// As [`get`](Self::get), but only what the watch has shown, without this process' own writes.
    pub fn get_seen(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get_seen(key).map(Cached::new)
    }
}

fn cached<K>(objects: Vec<Arc<Object>>) -> Vec<Cached<K>> {
    objects.into_iter().map(Cached::new).collect()
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

    /// What is known without decoding.
    pub fn head(&self) -> Head<'_> {
        self.object.head()
    }

    /// The object; decoded on first use and shared while anyone holds it.
    ///
    /// # Errors
    /// [`Invalid`] when the bytes do not decode into `K`; logged once and counted by the informer.
    pub fn get(&self) -> Result<Arc<K>, Invalid> {
        self.object.decode()
    }

    /// The compact JSON: what the API server sent without `apiVersion`, `kind` and
    /// `metadata.managedFields`.
    pub fn raw(&self) -> Cow<'_, [u8]> {
        self.object.body()
    }

    /// An annotation's value, read off the bytes.
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.object.head().annotation(key)
    }

    /// Are these two the same state in memory, not just equal?
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object)
    }
}
