//! A queue in which nothing is merged: every delta of every key, in the order of arrival.
//!
//! For consumers that must see each step. The queue is bounded, so producers must be able to wait.
//!
//! client-go's `RealFIFO`. Invariant: entries are only added at the end, and returned to the front,
//! so the order of arrival is the order of pops.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::contract::{ProcessOutcome, Queue, QueueItem, Replacement};
use super::key_lister::KeyListerGetter;
use super::object_delta::{Deleted, DeltaType, ObjectDelta};
use super::rules::Rules;
use windlass_core::error::BoxError;

/// An entry of a [`RealFifo`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RealDelta<K, T> {
    /// An object changed.
    Object {
        /// The object's key.
        key: K,
        /// The change.
        delta: ObjectDelta<T>,
    },
    /// A list as a single change: no other objects exist.
    ReplacedAll {
        /// The objects, in the list's order.
        objects: Vec<(K, T)>,
        /// False when some objects of the list were refused: missing objects may still exist.
        is_whole: bool,
        /// The list's version.
        resource_version: Arc<str>,
    },
    /// All known objects should be delivered again.
    SyncAll,
    /// The source has reached this version.
    Bookmark {
        /// The version.
        resource_version: Arc<str>,
    },
}

impl<K, T> RealDelta<K, T> {
    /// Returns the kind of this change.
    pub fn delta_type(&self) -> DeltaType {
        match self {
            Self::Object { delta, .. } => delta.delta_type(),
            Self::ReplacedAll { .. } => DeltaType::ReplacedAll,
            Self::SyncAll => DeltaType::SyncAll,
            Self::Bookmark { .. } => DeltaType::Bookmark,
        }
    }

    /// Returns the object's key; `None` for entries that concern all objects.
    pub fn key(&self) -> Option<&K> {
        match self {
            Self::Object { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// All deltas of all keys in the order of arrival, up to a bound.
///
/// - Nothing is merged or dropped: a deleted object is handed out with the object's whole history.
/// - When full, adding is refused ([`EnqueueError::Full`](super::EnqueueError::Full) returns the
///   object), and waits within a [`Shared`](super::Shared). A list is taken when there is room for
///   an entry, or when the list is empty; a resync always. Either may exceed the bound by the
///   entries that the call queues.
/// - [`replace`](Queue::replace) queues tombstones for objects that were queued or known and are
///   not listed, then a `Replaced` for each listed object. [Atomic](Self::atomic) queues hold one
///   `ReplacedAll` instead, and leave the comparison to the consumer.
/// - [`resync`](Queue::resync) queues a `Sync` for each known key that has no delta, or one
///   `SyncAll`.
/// - A batch holds a single delta per key; see [`take_batch`](Self::take_batch).
/// - A requeued delta goes back to the front, and counts for `has_synced` again: the order stays.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::{DeltaType, ProcessOutcome, Queue, RealFifo};
///
/// let mut queue = RealFifo::new(2, |pod: &(&'static str, u32)| Ok(pod.0));
/// queue.add(("web-0", 1))?;
/// queue.update(("web-0", 2))?;
/// let refused = queue.add(("web-1", 1)).unwrap_err();
/// assert_eq!(refused.into_object(), Some(("web-1", 1)));
///
/// let mut popped = Vec::new();
/// while queue
///     .pop(|delta, _| { popped.push(delta.delta_type()); ProcessOutcome::<()>::Done })
///     .is_some()
/// {}
/// assert_eq!(popped, [DeltaType::Added, DeltaType::Updated]);
/// # Ok::<(), windlass::fifo::EnqueueError<(&'static str, u32)>>(())
/// ```
pub struct RealFifo<K, T> {
    /// Names and trims objects.
    rules: Rules<K, T>,
    /// The deltas that wait, oldest first.
    entries: VecDeque<QueuedDelta<K, T>>,
    /// Bound on the number of entries; at least 1.
    most: usize,
    /// Whether a list is a single entry.
    is_atomic: bool,
    /// Whether anything was queued: an empty queue has not synced before.
    is_populated: bool,
    /// Entries of the first list that were not taken out.
    initial: usize,
}

/// A waiting delta.
struct QueuedDelta<K, T> {
    /// The change.
    delta: RealDelta<K, T>,
    /// Whether the entry belongs to the first list.
    is_initial: bool,
}

impl<K, T> fmt::Debug for RealFifo<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealFifo")
            .field("entries", &self.entries.len())
            .field("most", &self.most)
            .field("initial", &self.initial)
            .finish_non_exhaustive()
    }
}

impl<K: Ord + Clone + fmt::Debug, T: Clone> RealFifo<K, T> {
    /// Creates an empty queue of objects that `key` names, with room for `most` deltas (at
    /// least 1).
    pub fn new(
        most: usize,
        key: impl Fn(&T) -> Result<K, BoxError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            rules: Rules::new(key),
            entries: VecDeque::new(),
            most: most.max(1),
            is_atomic: false,
            is_populated: false,
            initial: 0,
        }
    }

    /// Every object that is added, updated, deleted or listed passes `transform` once. Tombstones
    /// and syncs do not: their objects have passed the transform before.
    #[must_use]
    pub fn transform(
        mut self,
        transform: impl Fn(T) -> Result<T, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.rules = self.rules.transform(transform);
        self
    }

    /// Makes the queue atomic: a list becomes a single `ReplacedAll`, a resync a single `SyncAll`.
    ///
    /// For consumers that replace their store as a whole. Default: no.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.is_atomic = true;
        self
    }

    /// Queues a bookmark: the source has reached `resource_version`. A full queue ignores the
    /// bookmark, as the next bookmark supersedes it. Returns whether the bookmark was
    /// queued.
    ///
    /// For consumers that resume a watch at their last version.
    pub fn bookmark(&mut self, resource_version: &str) -> bool {
        let has_room = self.has_room();
        if has_room {
            let resource_version = Arc::from(resource_version);
            self.push(RealDelta::Bookmark { resource_version }, false);
        }
        has_room
    }

    /// Returns the waiting entries, oldest first.
    ///
    /// Looks without taking anything out.
    pub fn iter(&self) -> impl Iterator<Item = &RealDelta<K, T>> {
        self.entries.iter().map(|entry| &entry.delta)
    }

    /// Takes out a run of deltas that can be applied in one step: at most `most` (at least 1), of
    /// distinct keys, all or none of them of the first list. An entry that concerns more than one
    /// object comes alone. `None` when no entry waits.
    ///
    /// A consumer that locks the store once for each batch handles a long list with few locks.
    pub fn take_batch(&mut self, most: usize) -> Option<QueueItem<Vec<RealDelta<K, T>>>> {
        let first = self.take()?;
        let is_initial = first.is_initial;
        let mut keys: BTreeSet<K> = first.item.key().cloned().into_iter().collect();
        let mut item = vec![first.item];
        // The entry concerns all objects: it is a batch of its own.
        if keys.is_empty() {
            return Some(QueueItem { item, is_initial });
        }
        while item.len() < most {
            let Some(next) = self.entries.front() else { break };
            let Some(key) = next.delta.key().filter(|_| next.is_initial == is_initial) else {
                break;
            };
            // A second delta of a key starts the next batch: a step cannot apply both.
            if !keys.insert(key.clone()) {
                break;
            }
            item.extend(self.take().map(|taken| taken.item));
        }
        Some(QueueItem { item, is_initial })
    }

    /// Puts a batch back to the front, in the same order.
    pub fn give_back_batch(&mut self, taken: QueueItem<Vec<RealDelta<K, T>>>) {
        for item in taken.item.into_iter().rev() {
            self.give_back(QueueItem { item, is_initial: taken.is_initial });
        }
    }

    /// Takes out a batch as [`take_batch`](Self::take_batch) does and passes it to `process`.
    pub fn pop_batch<E>(
        &mut self,
        most: usize,
        process: impl FnOnce(&[RealDelta<K, T>], bool) -> ProcessOutcome<E>,
    ) -> Option<ProcessOutcome<E>> {
        let taken = self.take_batch(most)?;
        let outcome = process(&taken.item, taken.is_initial);
        if matches!(outcome, ProcessOutcome::Requeue) {
            self.give_back_batch(taken);
        }
        Some(outcome)
    }

    fn push(&mut self, delta: RealDelta<K, T>, is_initial: bool) {
        self.entries.push_back(QueuedDelta { delta, is_initial });
        self.initial += usize::from(is_initial);
    }

    /// Returns the entries at the end that name no object: resyncs and empty lists, which a full
    /// queue takes, too. A single entry of each kind is enough; without merging, such entries would
    /// grow without bound.
    fn trailing_without_object(&mut self) -> impl Iterator<Item = &mut RealDelta<K, T>> {
        let has_no_object = |delta: &RealDelta<K, T>| match delta {
            RealDelta::SyncAll => true,
            RealDelta::ReplacedAll { objects, .. } => objects.is_empty(),
            RealDelta::Object { .. } | RealDelta::Bookmark { .. } => false,
        };
        let entries = self.entries.iter_mut().rev().map(|entry| &mut entry.delta);
        entries.take_while(move |delta| has_no_object(delta))
    }

    /// Merges an empty list into an equal list that waits, which gets the new version. Returns
    /// false if no equal list waits.
    fn relist(&mut self, is_whole: bool, version: &Arc<str>) -> bool {
        let before = self.trailing_without_object().find_map(|delta| match delta {
            RealDelta::ReplacedAll { is_whole: was_whole, resource_version, .. }
                if *was_whole == is_whole =>
            {
                Some(resource_version)
            }
            _ => None,
        });
        before.map(|before| *before = version.clone()).is_some()
    }

    /// Whether another resync would be redundant: a resync waits already, or no object is left to
    /// deliver.
    fn is_synced_last(&mut self) -> bool {
        self.trailing_without_object().any(|delta| {
            matches!(delta, RealDelta::SyncAll | RealDelta::ReplacedAll { is_whole: true, .. })
        })
    }

    /// Returns the last delta of each queued key, in the order in which the keys first came.
    fn last_deltas(&self) -> (Vec<K>, BTreeMap<K, &ObjectDelta<T>>) {
        let (mut keys, mut last) = (Vec::new(), BTreeMap::new());
        for entry in &self.entries {
            if let RealDelta::Object { key, delta } = &entry.delta
                && last.insert(key.clone(), delta).is_none()
            {
                keys.push(key.clone());
            }
        }
        (keys, last)
    }

    /// Returns tombstones for objects that are queued or known, and not in `listed`.
    fn tombstones(
        &self,
        listed: &BTreeSet<K>,
        known: &dyn KeyListerGetter<K, T>,
    ) -> Vec<(K, ObjectDelta<T>)> {
        let (queued, last) = self.last_deltas();
        let mut missing = Vec::new();
        for key in queued {
            // A key whose last delta is a deletion needs no other delta.
            let state = last.get(&key).and_then(|delta| delta.state());
            if let Some(state) = state.filter(|_| !listed.contains(&key)) {
                let deleted = Deleted::missed(Some(state.clone()));
                missing.push((key, ObjectDelta::Deleted(deleted)));
            }
        }
        for key in known.keys() {
            if !listed.contains(&key) && !last.contains_key(&key) {
                let deleted = Deleted::missed(known.get(&key));
                missing.push((key, ObjectDelta::Deleted(deleted)));
            }
        }
        missing
    }
}

impl<K: Ord + Clone + fmt::Debug, T: Clone> Queue for RealFifo<K, T> {
    type Key = K;
    type Object = T;
    type Popped = RealDelta<K, T>;

    fn rules(&self) -> &Rules<K, T> {
        &self.rules
    }

    fn enter(&mut self, key: K, delta: ObjectDelta<T>, _known: &dyn KeyListerGetter<K, T>) {
        self.is_populated = true;
        self.push(RealDelta::Object { key, delta }, false);
    }

    fn enter_list(&mut self, list: Replacement<K, T>, known: &dyn KeyListerGetter<K, T>) {
        let is_initial = !self.is_populated;
        self.is_populated = true;
        let Replacement { objects, is_whole, resource_version } = list;
        if self.is_atomic {
            // A full queue takes empty lists, too: equal lists merge, so that the queue stays
            // bounded.
            if objects.is_empty() && self.relist(is_whole, &resource_version) {
                return;
            }
            let all = RealDelta::ReplacedAll { objects, is_whole, resource_version };
            return self.push(all, is_initial);
        }
        // Only a whole list proves that missing objects are gone.
        if is_whole {
            let listed = objects.iter().map(|(key, _)| key.clone()).collect();
            for (key, delta) in self.tombstones(&listed, known) {
                self.push(RealDelta::Object { key, delta }, is_initial);
            }
        }
        for (key, object) in objects {
            let delta = ObjectDelta::Replaced(object);
            self.push(RealDelta::Object { key, delta }, is_initial);
        }
    }

    fn resync(&mut self, known: &dyn KeyListerGetter<K, T>) {
        if self.is_atomic {
            if !self.is_synced_last() {
                self.push(RealDelta::SyncAll, false);
            }
            return;
        }
        let queued: BTreeSet<K> =
            self.entries.iter().filter_map(|entry| entry.delta.key().cloned()).collect();
        for key in known.keys() {
            if !queued.contains(&key)
                && let Some(object) = known.get(&key)
            {
                self.push(RealDelta::Object { key, delta: ObjectDelta::Sync(object) }, false);
            }
        }
    }

    fn take(&mut self) -> Option<QueueItem<RealDelta<K, T>>> {
        let QueuedDelta { delta, is_initial } = self.entries.pop_front()?;
        self.initial -= usize::from(is_initial);
        Some(QueueItem { item: delta, is_initial })
    }

    fn give_back(&mut self, taken: QueueItem<RealDelta<K, T>>) {
        let QueueItem { item: delta, is_initial } = taken;
        self.initial += usize::from(is_initial);
        self.entries.push_front(QueuedDelta { delta, is_initial });
    }

    fn states(item: &RealDelta<K, T>) -> Vec<(K, Option<T>)> {
        match item {
            RealDelta::Object { key, delta } => vec![(key.clone(), delta.state().cloned())],
            _ => Vec::new(),
        }
    }

    fn has_synced(&self) -> bool {
        self.is_populated && self.initial == 0
    }

    fn len(&self) -> usize {
        self.entries.len()
    }

    fn has_room(&self) -> bool {
        self.entries.len() < self.most
    }
}
