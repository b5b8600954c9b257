//! Listers: lists and gets for callers that only read all objects of a kind, or those of a
//! namespace.
//!
//! They lack the indexes and snapshots of a [`Store`].

use std::fmt;

use super::cached::Cached;
use super::view::Store;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, Resource, Selector};

/// Reads the cached objects of a kind; cheap to clone. Each call answers from a single moment.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::resource::Selector;
/// use windlass::store::Store;
///
/// fn count(maps: &Store<ConfigMap>) -> (usize, bool) {
///     let lister = maps.lister();
///     let in_shop = lister.namespace("shop");
///     (lister.list(&Selector::default()).len(), in_shop.get("prices").is_ok())
/// }
/// # let _ = count;
/// ```
pub struct Lister<K> {
    store: Store<K>,
}

/// Reads the cached objects of a kind in a single namespace; cheap to clone.
pub struct NamespaceLister<K> {
    store: Store<K>,
    namespace: String,
}

impl<K: Resource> Store<K> {
    /// Returns the same objects behind the methods of client-go's listers.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.clone())
    }
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone() }
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), namespace: self.namespace.clone() }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lister").field(&self.store).finish()
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamespaceLister").field(&self.store).field(&self.namespace).finish()
    }
}

impl<K: Resource> Lister<K> {
    pub(in crate::store) fn new(store: Store<K>) -> Self {
        Self { store }
    }

    /// Returns the objects of all namespaces that `labels` matches, in key order. The empty
    /// selector reads no object's labels.
    pub fn list(&self, labels: &Selector) -> Vec<Cached<K>> {
        self.store.select(None, labels)
    }

    /// Returns the object of that name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the cache does not have the object; the API server may.
    pub fn get(&self, key: &ObjectKey) -> Result<Cached<K>, Error> {
        get(&self.store, key)
    }

    /// Returns a lister of the objects of a single namespace.
    pub fn namespace(&self, namespace: impl Into<String>) -> NamespaceLister<K> {
        NamespaceLister { store: self.store.clone(), namespace: namespace.into() }
    }
}

impl<K: Resource> NamespaceLister<K> {
    /// Returns the objects of the namespace that `labels` matches, in key order. The cost depends
    /// on the objects of the namespace, not on those of others.
    pub fn list(&self, labels: &Selector) -> Vec<Cached<K>> {
        self.store.select(Some(&self.namespace), labels)
    }

    /// Returns the object of that name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the cache does not have the object; the API server may.
    pub fn get(&self, name: &str) -> Result<Cached<K>, Error> {
        get(
            &self.store,
            &ObjectKey::new(Some(&self.namespace), name).in_cluster(self.store.core().cluster()),
        )
    }
}

/// The error of client-go's listers for an object that is not in the cache.
fn get<K: Resource>(store: &Store<K>, key: &ObjectKey) -> Result<Cached<K>, Error> {
    store.get(key).ok_or_else(|| {
        let text = format!("{} \"{key}\" is not in the cache", store.core().info());
        Error::new(ErrorKind::NotFound, text)
    })
}
