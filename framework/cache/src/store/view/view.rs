//! Typed read views: of a store, and of a single moment of a store.

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::fmt::{Display, Write};
use std::marker::PhantomData;
use std::sync::Arc;

use super::cached::Cached;
use crate::store::cache::{ReadTime, StoreCore, StoreStats};
use crate::store::index::{Index, IndexProbe, IndexValue};
use crate::store::object::{Invalid, Object};
use crate::store::state::{SnapshotDiff, Unconfirmed};
use windlass_core::error::Error;
use windlass_core::resource::{ObjectKey, Resource, Selector};

/// A read view of the cached objects of a kind; cheap to clone. Each call answers from a single
/// moment; take a [`snapshot`](Self::snapshot) for several calls.
///
/// client-go's `Indexer`, read-only.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use k8s_openapi::api::core::v1::Pod;
/// use windlass::resource::ObjectKey;
/// use windlass::store::{Index, Store};
///
/// const BY_NODE: Index<Pod, String> = Index::on_path("node", &["spec", "nodeName"]);
///
/// /// Restarts of a Pod's first container, and the number of Pods beside it on its node.
/// fn describe(pods: &Store<Pod>, key: &ObjectKey) -> Option<(i32, usize)> {
///     let pod = pods.get(key)?.get().ok()?;
///     let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
///     let node = pod.spec.as_ref()?.node_name.as_deref()?;
///     // Both lookups cost no request and decode no other Pod.
///     Some((status.restart_count, pods.by_index(BY_NODE, node).len() - 1))
/// }
/// # let _ = describe;
/// ```
pub struct Store<K> {
    /// The shared cache.
    core: Arc<StoreCore>,
    /// Keeps the informer alive that fills this store.
    holder: Option<Arc<dyn Any + Send + Sync>>,
    kind: PhantomData<fn() -> K>,
}

/// The content of a store at a single moment, own writes included: all answers are from then.
///
/// Taking a snapshot copies nothing. For each snapshot that is held the store keeps the old version
/// of each key that changes, one per key: hold a snapshot for a reconcile, not for the life of the
/// process.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use k8s_openapi::api::core::v1::Secret;
/// use windlass::store::Store;
///
/// /// Whether all Secrets refer to one owner: both numbers are of one moment.
/// fn all_are_owned(secrets: &Store<Secret>, uid: &str) -> bool {
///     let snapshot = secrets.snapshot();
///     snapshot.owned_by(uid).len() == snapshot.len()
/// }
/// # let _ = all_are_owned;
/// ```
pub struct Snapshot<K> {
    /// The shared cache.
    core: Arc<StoreCore>,
    /// Differences of the moment from the present state.
    diff: Arc<SnapshotDiff>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), holder: self.holder.clone(), kind: PhantomData }
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        let (core, diff) = (Arc::clone(&self.core), Arc::clone(&self.diff));
        Self { core, diff, kind: PhantomData }
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({}, {} objects)", self.core.info(), self.core.len(ReadTime::Now))
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.core.len(ReadTime::SnapshotDiff(&self.diff));
        write!(f, "Snapshot({}, {objects} objects)", self.core.info())
    }
}

impl<K: Resource> Store<K> {
    #[doc(hidden)]
    pub fn new(core: Arc<StoreCore>) -> Self {
        Self { core, holder: None, kind: PhantomData }
    }

    /// Returns the store with `holder`, which is kept alive for as long as the store or a clone of
    /// the store lives.
    pub(crate) fn held_by(self, holder: Arc<dyn Any + Send + Sync>) -> Self {
        Self { holder: Some(holder), ..self }
    }

    /// Returns a view of the same cache that does not keep the informer running.
    ///
    /// Once no other user of the informer is left, the view keeps showing the last state. Meant for
    /// callers that the informer holds, such as a listener that is kept (`Registration::keep`) and
    /// reads the cache of that informer: with an ordinary store the two would keep each other alive
    /// for as long as the registry runs.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::informer::Informer;
    /// # fn example(pods: &Informer<Pod>) {
    /// let store = pods.store().non_owning();
    /// // The listener reads its own cache and does not keep it running.
    /// pods.on_change(move |change| println!("{} of {}", change.key(), store.len())).keep();
    /// # }
    /// ```
    #[must_use]
    pub fn non_owning(&self) -> Self {
        Self { core: Arc::clone(&self.core), holder: None, kind: PhantomData }
    }

    pub(in crate::store) fn core(&self) -> &StoreCore {
        &self.core
    }

    /// Returns the object of that name; `None` when the cache does not have the object, though the
    /// API server may. Own writes are visible before the watch shows them; see
    /// [`get_seen`](Self::get_seen).
    ///
    /// Costs a single lookup under a read lock; decodes nothing.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get(key, ReadTime::Now).map(Cached::new)
    }

    /// Returns all objects, in key order. Objects are shared with the cache, neither copied nor
    /// decoded.
    ///
    /// The order is remembered, so a second list without created or deleted objects sorts nothing.
    pub fn list(&self) -> Vec<Cached<K>> {
        cached(self.core.collect(None, ReadTime::Now))
    }

    /// Returns the objects of a namespace (`None`: all) that `labels` matches, in key order.
    /// The empty selector reads no object's labels.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::resource::Selector;
    /// use windlass::store::Store;
    ///
    /// fn web_pods(pods: &Store<Pod>, selector: &Selector) -> usize {
    ///     pods.select(Some("shop"), selector).len()
    /// }
    /// # let _ = web_pods;
    /// ```
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        select(self.core.collect(namespace, ReadTime::Now), labels)
    }

    /// Returns the objects whose index value is `value`, in key order: by namespace, then by name.
    ///
    /// Key order is alphabetical and implies neither age nor priority, and users of the cluster
    /// choose the values. When a single object among several with the same value is to win, compare
    /// their ages ([`is_older_than`](windlass_core::resource::ResourceExt::is_older_than)), or look
    /// within a namespace.
    ///
    /// An index that the store does not have yet is built by this call and kept. A value of another
    /// type than the index has does not compile:
    ///
    /// ```compile_fail,E0277
    /// # extern crate windlass_cache as windlass;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::store::{Index, Store};
    ///
    /// const BY_PRIORITY: Index<Pod, i32> = Index::on_path("priority", &["spec", "priority"]);
    /// fn urgent(pods: &Store<Pod>) -> usize {
    ///     pods.by_index(BY_PRIORITY, "high").len()
    /// }
    /// ```
    ///
    /// # Panics
    /// When the index cannot be built, with the error that [`ensure_index`](Self::ensure_index)
    /// returns to callers that check first: an empty answer would be taken for the truth. In a
    /// reconcile a panic is caught, logged and retried, and stops nothing else.
    pub fn by_index<V: IndexValue + Borrow<Q>, Q: ?Sized + Display>(
        &self,
        index: Index<K, V>,
        value: &Q,
    ) -> Vec<Cached<K>> {
        self.by_text(index, value)
    }

    /// As [`by_index`](Self::by_index), by the text of a value.
    #[doc(hidden)]
    pub fn by_text<V: IndexValue, Q: ?Sized + Display>(
        &self,
        index: Index<K, V>,
        text: &Q,
    ) -> Vec<Cached<K>> {
        by_index(&self.core, ReadTime::Now, index, text)
    }

    /// Builds an index now, so that no lookup has to. Objects may be in the store already, and may
    /// change meanwhile.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::store::{Index, Store};
    ///
    /// const BY_NODE: Index<Pod, String> = Index::on_path("node", &["spec", "nodeName"]);
    ///
    /// /// Fails at the start of the program, and not at the first lookup.
    /// fn prepare(pods: &Store<Pod>) -> Result<(), windlass::Error> {
    ///     pods.ensure_index(BY_NODE)
    /// }
    /// # let _ = prepare;
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage) in three cases:
    ///
    /// - The index is on an empty path, or on the metadata or on labels, annotations or owner
    ///   references, which are no values.
    /// - Only metadata are read, and the path is outside of `metadata`.
    /// - Objects are in the store already and the field was not kept of them, because a projection
    ///   does not have the field. For a [`Typed`](crate::store::Representation::Typed) kind no path
    ///   outside of `metadata` is known to be kept, unless the kind is read as
    ///   [`DynamicObject`](windlass_core::resource::DynamicObject). An index by a function, and an
    ///   index that is declared before the first list, may be on any field.
    pub fn ensure_index<V: IndexValue>(&self, index: Index<K, V>) -> Result<(), Error> {
        self.core.ensure_index(index.id(), &index.evaluator())
    }

    /// Builds an index as [`ensure_index`](Self::ensure_index), and returns the computation of the
    /// index's values for objects that a listener receives.
    #[doc(hidden)]
    pub fn probe<V: IndexValue>(&self, index: Index<K, V>) -> Result<IndexProbe, Error> {
        let evaluator = index.evaluator();
        self.core.ensure_index(index.id(), &evaluator)?;
        Ok(IndexProbe::new(index.id(), index.name(), &evaluator))
    }

    /// Returns the objects with an owner reference to this uid, in key order, from an ordinary
    /// index.
    ///
    /// An owner reference is a claim: any user who may create such an object in the namespace can
    /// refer to any uid that the user can read. Do not decide by that reference alone that an
    /// object exists, or how many there are; compare names, or the applied content.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use windlass::store::Store;
    ///
    /// /// Names of the Pods that refer to a ReplicaSet.
    /// fn names(pods: &Store<Pod>, uid: &str) -> Vec<String> {
    ///     pods.owned_by(uid).iter().map(|pod| pod.key().name().to_owned()).collect()
    /// }
    /// # let _ = names;
    /// ```
    ///
    /// # Panics
    /// As [`by_index`](Self::by_index).
    pub fn owned_by(&self, uid: &str) -> Vec<Cached<K>> {
        self.by_index(owner_index(), uid)
    }

    /// Returns the objects that are known not to decode into their type, in key order, each with
    /// the error. An object that was never read is not known to be invalid, unless the kind's cache
    /// validates eagerly ([`DecodeCheckTime::Eager`](crate::informer::DecodeCheckTime::Eager)) or
    /// keeps decoded values.
    pub fn invalid(&self) -> Vec<(Cached<K>, Invalid)> {
        let found = self.core.invalid_list().into_iter();
        found.map(|(object, message)| (Cached::new(object), Invalid { message })).collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.core.len(ReadTime::Now)
    }

    /// Whether the store has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a snapshot, for several reads that must agree with each other.
    ///
    /// Cheap while the cache has no own writes that the watch has not shown.
    pub fn snapshot(&self) -> Snapshot<K> {
        let diff = self.core.snapshot_diff();
        Snapshot { core: Arc::clone(&self.core), diff, kind: PhantomData }
    }

    /// Returns the newest resourceVersion up to which the store has received everything: that of
    /// the last list, event or bookmark. Empty before the first list. With several namespaces the
    /// newest counts.
    ///
    /// For debug output: only the server can compare versions; their texts have no order.
    pub fn resource_version(&self) -> String {
        self.core.version().to_string()
    }

    /// Returns the sizes of the store, in objects and in bytes.
    pub fn stats(&self) -> StoreStats {
        self.core.stats()
    }

    /// Whether this process wrote the object more than 10 s ago and the watch has not shown the
    /// write yet. [`get`](Self::get) then returns a state that is older than that write.
    ///
    /// False for keys that this process did not write.
    pub fn is_stale(&self, key: &ObjectKey) -> bool {
        self.core.is_stale(key)
    }

    /// Returns the state of an own write to `key` that the watch has not shown.
    #[doc(hidden)]
    pub fn unseen(&self, key: &ObjectKey) -> Option<Unconfirmed> {
        self.core.unseen(key)
    }

    /// As [`get`](Self::get), but only the state that the watch has shown, without own writes.
    pub fn get_seen(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get_seen(key).map(Cached::new)
    }
}

impl<K: Resource> Snapshot<K> {
    /// Returns the object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get(key, self.at()).map(Cached::new)
    }

    /// Returns all objects, in key order.
    pub fn list(&self) -> Vec<Cached<K>> {
        cached(self.core.collect(None, self.at()))
    }

    /// Returns the objects of a namespace (`None`: all) that `labels` matches, in key order.
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        select(self.core.collect(namespace, self.at()), labels)
    }

    /// Returns the objects whose index value is `value`, in key order.
    ///
    /// # Panics
    /// As [`Store::by_index`], when the index cannot be built.
    pub fn by_index<V: IndexValue + Borrow<Q>, Q: ?Sized + Display>(
        &self,
        index: Index<K, V>,
        value: &Q,
    ) -> Vec<Cached<K>> {
        by_index(&self.core, self.at(), index, value)
    }

    /// Returns the objects with an owner reference to this uid, in key order; these are claims, as
    /// those of [`Store::owned_by`].
    ///
    /// # Panics
    /// As [`Store::by_index`].
    pub fn owned_by(&self, uid: &str) -> Vec<Cached<K>> {
        self.by_index(owner_index(), uid)
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.core.len(self.at())
    }

    /// Whether the snapshot has no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The moment that all reads of the snapshot answer from.
    fn at(&self) -> ReadTime<'_> {
        ReadTime::SnapshotDiff(&self.diff)
    }
}

/// Types a list of objects.
fn cached<K>(objects: Vec<Arc<Object>>) -> Vec<Cached<K>> {
    objects.into_iter().map(Cached::new).collect()
}

/// Keeps the objects that match; reads labels from the bytes.
fn select<K>(mut objects: Vec<Arc<Object>>, labels: &Selector) -> Vec<Cached<K>> {
    if !labels.is_empty() {
        // Without the lock: the objects are shared references already.
        objects.retain(|object| {
            let metadata = object.metadata();
            labels.matches_with(&|key| metadata.label(key))
        });
    }
    cached(objects)
}

/// The index of [`Store::owned_by`].
fn owner_index<K: Resource>() -> Index<K, String> {
    Index::on_path("owner", &["metadata", "ownerReferences", "uid"])
}

/// Looks an index value up; builds the index if the store lacks it.
fn by_index<K: Resource, V: IndexValue>(
    core: &StoreCore,
    at: ReadTime<'_>,
    index: Index<K, V>,
    value: &(impl ?Sized + Display),
) -> Vec<Cached<K>> {
    let mut term = TermBuffer::default();
    // `TermBuffer` takes every text: only the value's own `Display` can fail, and then the value
    // has no text.
    if write!(term, "{value}").is_err() {
        return Vec::new();
    }
    let id = index.id();
    if let Some(found) = core.lookup(id, term.text(), at) {
        return cached(found);
    }
    if let Err(error) = core.ensure_index(id, &index.evaluator()) {
        // An empty answer would be believed, and acted upon.
        panic!("{error}");
    }
    cached(core.lookup(id, term.text(), at).unwrap_or_default())
}

/// Longest value that is formatted without the heap, in bytes; names and uids fit.
const TERM: usize = 128;

/// A value's text, without an allocation for a short value.
struct TermBuffer {
    /// The text, while it fits.
    short: [u8; TERM],
    /// Bytes in use in `short`.
    length: usize,
    /// The text, once it does not fit; empty before.
    long: String,
}

impl Default for TermBuffer {
    fn default() -> Self {
        Self { short: [0; TERM], length: 0, long: String::new() }
    }
}

impl TermBuffer {
    /// Returns the text so far, from whichever of the two buffers is in use.
    fn text(&self) -> &str {
        if self.long.is_empty() {
            // Only whole `&str`s were written, so the bytes are UTF-8.
            return std::str::from_utf8(&self.short[..self.length]).unwrap_or_default();
        }
        &self.long
    }
}

impl Write for TermBuffer {
    /// Appends `text`. Never fails, so an error of a `write!` comes from the formatted value.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        if self.long.is_empty() && end <= TERM {
            self.short[self.length..end].copy_from_slice(text.as_bytes());
            self.length = end;
            return Ok(());
        }
        // Not enough space left in `short`: all text so far moves to the heap.
        if self.long.is_empty() {
            let short = self.text().to_owned();
            self.long = short;
        }
        self.long.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_holds_texts_of_any_length() {
        for lengths in [&[0][..], &[1, 127], &[128], &[129], &[100, 0, 28, 1, 0, 500]] {
            let (mut term, mut plain) = (TermBuffer::default(), String::new());
            for length in lengths {
                let text = "é".repeat(*length);
                write!(term, "{text}").unwrap();
                plain.push_str(&text);
            }
            assert_eq!(term.text(), plain);
        }
    }
}
