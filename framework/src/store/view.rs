//! The read view of a store, and of one moment of it, with their type.

use std::any::Any;
use std::borrow::Borrow;
use std::fmt;
use std::fmt::{Display, Write};
use std::marker::PhantomData;
use std::sync::Arc;

use super::core::Core;
use super::index::{Index, IndexValue};
use super::lister::Lister;
use super::moment::Moment;
use super::object::Object;
use super::own::Unseen;
use super::reads::At;
use super::stats::StoreStats;
use super::{Cached, Invalid};
use crate::error::Error;
use crate::resource::{ObjectKey, Resource, Selector};

/// A read view of the cached objects of one kind; cheap to clone. Each call answers from one moment;
/// take a [`snapshot`](Self::snapshot) for several calls.
pub struct Store<K> {
    core: Arc<Core>,
    /// Keeps going what keeps it in step.
    holder: Option<Arc<dyn Any + Send + Sync>>,
    kind: PhantomData<fn() -> K>,
}

/// What a store held at one moment, own writes included: all its answers are from then.
///
/// Taking one copies nothing. While it is held the store remembers for it what changes, one old
/// version a key: hold it for a reconcile, not for the process's life.
pub struct Snapshot<K> {
    core: Arc<Core>,
    moment: Arc<Moment>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), holder: self.holder.clone(), kind: PhantomData }
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        let (core, moment) = (Arc::clone(&self.core), Arc::clone(&self.moment));
        Self { core, moment, kind: PhantomData }
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({}, {} objects)", self.core.info(), self.core.len(At::Now))
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let objects = self.core.len(At::Moment(&self.moment));
        write!(f, "Snapshot({}, {objects} objects)", self.core.info())
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

    /// The same cache, without keeping its informer going: once nobody else uses it, it shows what
    /// it showed last. For whoever is held by the informer itself, such as a listener that is
    /// kept (`Registration::keep`) and reads the cache that it listens to: with an
    /// ordinary store in hand the two would keep each other for as long as the registry runs.
    #[must_use]
    pub fn unheld(&self) -> Self {
        Self { core: Arc::clone(&self.core), holder: None, kind: PhantomData }
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get(key, At::Now).map(Cached::new)
    }

    /// All objects, in key order.
    pub fn list(&self) -> Vec<Cached<K>> {
        cached(self.core.collect(None, At::Now))
    }

    /// The objects of a namespace (`None`: all) that `labels` matches, in key order.
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        select(self.core.collect(namespace, At::Now), labels)
    }

    /// The objects whose index value is `value`, in key order: by namespace, then by name. That is the
    /// alphabet's order and says nothing of age or right, and users of the cluster choose the values: when
    /// one of several objects with the same value is to win, compare their ages
    /// ([`is_older_than`](crate::resource::ResourceExt::is_older_than)), or look within one namespace.
    ///
    /// An index that the store does not have yet is built by this call and kept. A value of another type
    /// than the index has does not compile:
    ///
    /// ```compile_fail,E0277
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
    /// When the index cannot be built, with the error that [`ensure_index`](Self::ensure_index) has
    /// for who wants to ask first: "nothing was found" would be taken for the truth. In a reconcile
    /// a panic is caught, logged and retried, and stops nothing else.
    pub fn by_index<V: IndexValue + Borrow<Q>, Q: ?Sized + Display>(
        &self,
        index: Index<K, V>,
        value: &Q,
    ) -> Vec<Cached<K>> {
        self.by_text(index, value)
    }

    /// As [`by_index`](Self::by_index), by the text of a value.
    pub(crate) fn by_text<V: IndexValue, Q: ?Sized + Display>(
        &self,
        index: Index<K, V>,
        text: &Q,
    ) -> Vec<Cached<K>> {
        by_index(&self.core, At::Now, index, text)
    }

    /// Builds an index now, so that no lookup has to. Objects may be there already, and may change
    /// meanwhile.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when the index is on an empty path or on one that
    /// ends at an object; on a field path outside of `metadata` and only metadata are read; and when
    /// objects are there already and the field was not kept of them, as a projection, or the type of a
    /// [`Typed`](super::Representation::Typed) kind, does not have it. Of a `Typed` kind that is asked of
    /// the type; one that cannot say (`flatten`, `untagged`) counts as without the field. Declared
    /// before the first list, an index may be on any field.
    pub fn ensure_index<V: IndexValue>(&self, index: Index<K, V>) -> Result<(), Error> {
        self.core.ensure_index(index.id(), &index.evaluator())
    }

    /// The objects with an owner reference to this uid, in key order; an index like any other.
    ///
    /// An owner reference is a claim: whoever may create such an object in the namespace can make one to
    /// any uid that he sees. Do not decide by it alone that something is there, or how much of it;
    /// compare names, or what was applied.
    ///
    /// # Panics
    /// As [`by_index`](Self::by_index).
    pub fn owned_by(&self, uid: &str) -> Vec<Cached<K>> {
        self.by_index(owner_index(), uid)
    }

    /// The objects that are known not to decode into their type, in key order, each with its error.
    /// What nobody has read yet is not known, unless the kind's cache validates eagerly
    /// ([`Validate::Eager`](crate::informer::Validate::Eager)) or keeps values.
    pub fn invalid(&self) -> Vec<(Cached<K>, Invalid)> {
        let found = self.core.invalid_list().into_iter();
        found.map(|(object, message)| (Cached::new(object), Invalid { message })).collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.core.len(At::Now)
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This moment, for several reads that must agree with each other.
    pub fn snapshot(&self) -> Snapshot<K> {
        let moment = self.core.moment();
        Snapshot { core: Arc::clone(&self.core), moment, kind: PhantomData }
    }

    /// The same objects behind the calls that client-go's listers have.
    pub fn lister(&self) -> Lister<K> {
        Lister::new(self.clone())
    }

    /// The newest resourceVersion up to which the store has been told everything: of the last list,
    /// event or bookmark. Empty before the first list. Of several namespaces the newest counts.
    pub fn resource_version(&self) -> String {
        self.core.version().to_string()
    }

    /// What the store holds and costs.
    pub fn stats(&self) -> StoreStats {
        self.core.stats()
    }

    /// Did this process write the object more than 10 s ago, and the watch has not shown it yet?
    /// What [`get`](Self::get) returns is then older than that write.
    pub fn is_stale(&self, key: &ObjectKey) -> bool {
        self.core.is_stale(key)
    }

    /// What is known of an own write to `key` that the watch has not shown.
    pub(crate) fn unseen(&self, key: &ObjectKey) -> Option<Unseen> {
        self.core.unseen(key)
    }

    /// As [`get`](Self::get), but only what the watch has shown, without this process' own writes.
    pub fn get_seen(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get_seen(key).map(Cached::new)
    }
}

impl<K: Resource> Snapshot<K> {
    /// The object of that name.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.core.get(key, self.at()).map(Cached::new)
    }

    /// All objects, in key order.
    pub fn list(&self) -> Vec<Cached<K>> {
        cached(self.core.collect(None, self.at()))
    }

    /// The objects of a namespace (`None`: all) that `labels` matches, in key order.
    pub fn select(&self, namespace: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        select(self.core.collect(namespace, self.at()), labels)
    }

    /// The objects whose index value is `value`, in key order.
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

    /// The objects with an owner reference to this uid, in key order; these are claims, as those of
    /// [`Store::owned_by`].
    ///
    /// # Panics
    /// As [`Store::by_index`].
    pub fn owned_by(&self, uid: &str) -> Vec<Cached<K>> {
        self.by_index(owner_index(), uid)
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.core.len(self.at())
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn at(&self) -> At<'_> {
        At::Moment(&self.moment)
    }
}

fn cached<K>(objects: Vec<Arc<Object>>) -> Vec<Cached<K>> {
    objects.into_iter().map(Cached::new).collect()
}

fn select<K>(mut objects: Vec<Arc<Object>>, labels: &Selector) -> Vec<Cached<K>> {
    if !labels.is_empty() {
        objects.retain(|object| {
            let head = object.head();
            labels.matches_with(&|key| head.label(key))
        });
    }
    cached(objects)
}

fn owner_index<K: Resource>() -> Index<K, String> {
    Index::on_path("owner", &["metadata", "ownerReferences", "uid"])
}

fn by_index<K: Resource, V: IndexValue>(
    core: &Core,
    at: At<'_>,
    index: Index<K, V>,
    value: &(impl ?Sized + Display),
) -> Vec<Cached<K>> {
    let mut term = Term::default();
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

/// Longer values are put together on the heap; names and uids fit.
const TERM: usize = 128;

/// A value's text, without an allocation when it is short.
struct Term {
    short: [u8; TERM],
    length: usize,
    long: String,
}

impl Default for Term {
    fn default() -> Self {
        Self { short: [0; TERM], length: 0, long: String::new() }
    }
}

impl Term {
    fn text(&self) -> &str {
        if self.long.is_empty() {
            // Whole texts were put in.
            return std::str::from_utf8(&self.short[..self.length]).unwrap_or_default();
        }
        &self.long
    }
}

impl Write for Term {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        if self.long.is_empty() && end <= TERM {
            self.short[self.length..end].copy_from_slice(text.as_bytes());
            self.length = end;
            return Ok(());
        }
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
            let (mut term, mut plain) = (Term::default(), String::new());
            for length in lengths {
                let text = "é".repeat(*length);
                write!(term, "{text}").unwrap();
                plain.push_str(&text);
            }
            assert_eq!(term.text(), plain);
        }
    }
}
