//! The cache: objects by key and by index, always consistent. No I/O, no tasks.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::resource::{ObjectKey, Resource, Selector};

mod index;

pub use index::{Index, IndexValue};

/// A read view of the cached objects of one kind; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store<K> {
    _kind: PhantomData<fn() -> K>,
}

/// A cached object: head and compact bytes, decoded on first use.
#[derive(Clone, Debug)]
pub struct Cached<K> {
    _kind: PhantomData<fn() -> K>,
}

/// The object's bytes do not decode into its type; head and raw bytes are still there.
#[derive(Clone, Debug)]
pub struct Invalid {
    /// What serde said, with the path.
    pub message: Arc<str>,
}

/// What is known of an object without decoding it.
#[derive(Clone, Debug)]
pub struct Head {
    _todo: (),
}

#[allow(unused_variables, clippy::unimplemented)]
impl<K: Resource> Store<K> {
    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        unimplemented!()
    }

    /// All objects, in key order.
    pub fn list(&self) -> Vec<Cached<K>> {
        unimplemented!()
    }

    /// The objects of a namespace (`None`: all) that `labels` matches, in key order.
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        unimplemented!()
    }

    /// The objects whose index value is `value`, in key order. An index that the store does not have
    /// yet is built by this call.
    pub fn by_index<V: IndexValue, Q: ?Sized + ToString>(
        &self,
        index: Index<K, V>,
        value: &Q,
    ) -> Vec<Cached<K>> {
        unimplemented!()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        unimplemented!()
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[allow(clippy::unimplemented)]
impl<K: Resource> Cached<K> {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        unimplemented!()
    }

    /// What is known without decoding.
    pub fn head(&self) -> &Head {
        unimplemented!()
    }

    /// The object; decoded on first use and shared while anyone holds it.
    pub fn get(&self) -> Result<Arc<K>, Invalid> {
        unimplemented!()
    }

    /// The compact JSON.
    pub fn raw(&self) -> &[u8] {
        unimplemented!()
    }
}

#[allow(clippy::unimplemented)]
impl Head {
    /// Uid.
    pub fn uid(&self) -> &str {
        unimplemented!()
    }

    /// resourceVersion.
    pub fn resource_version(&self) -> &str {
        unimplemented!()
    }

    /// Generation; 0 when the kind has none.
    pub fn generation(&self) -> i64 {
        unimplemented!()
    }

    /// Is it marked for deletion?
    pub fn is_terminating(&self) -> bool {
        unimplemented!()
    }

    /// Labels, sorted by key.
    pub fn labels(&self) -> &[(Arc<str>, Arc<str>)] {
        unimplemented!()
    }

    /// Finalizers.
    pub fn finalizers(&self) -> &[Arc<str>] {
        unimplemented!()
    }

    /// Owner references.
    pub fn owners(&self) -> &[Owner] {
        unimplemented!()
    }
}

/// One owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// `group/version`.
    pub api_version: Arc<str>,
    /// Kind.
    pub kind: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Uid.
    pub uid: Arc<str>,
    /// Is it the managing controller?
    pub controller: bool,
}
