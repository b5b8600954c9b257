//! A queue that hands out all changes of a key since the key's last pop.
//!
//! The queue compares lists with the queued and the known objects, and makes tombstones for missing
//! ones. Deltas of one key are kept, not merged (except for two deletions in a row), so the queue's
//! size is bounded only by the speed of the consumer; `windlass_cache::delta::DeltaQueue` has a
//! bound.
//!
//! Invariants: each key in `order` has a place and the other way round; no place is without deltas;
//! `initial` counts the places of the first list, tombstones included.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use super::contract::{Queue, QueueItem, Replacement};
use super::key_lister::KeyListerGetter;
use super::object_delta::{Deleted, ObjectDelta};
use super::rules::Rules;
use windlass_core::error::BoxError;

/// The changes of a key, oldest first; never empty.
///
/// client-go's `Deltas`, with the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deltas<K, T> {
    /// The object's key.
    pub key: K,
    /// The key's changes.
    pub deltas: Vec<ObjectDelta<T>>,
}

impl<K, T> Deltas<K, T> {
    /// Returns the last change.
    ///
    /// For consumers that need the present state only.
    pub fn newest(&self) -> Option<&ObjectDelta<T>> {
        self.deltas.last()
    }
}

/// Deltas by key, in the order in which the keys first came.
///
/// - A pop hands out all deltas of a key, oldest first.
/// - Two deletions in a row become one: a deletion that was seen beats a
///   tombstone.
/// - A deletion of a key that is neither queued nor known is ignored.
/// - [`replace`](Queue::replace) queues a `Replaced` for each listed object, and a tombstone for
///   each queued or known object that the list lacks. Only `replace` makes tombstones.
/// - [`resync`](Queue::resync) queues a `Sync` for each known key that has no delta, so that no
///   older state ever follows a newer one.
/// - The queue has synced when the keys of the first list, tombstones included, were taken out; at
///   once when an object was added before any list.
/// - Requeued deltas go back to the end if their key is not queued. If the key is queued, the
///   queued deltas win and the requeued ones are dropped, including deletions; they no longer count
///   for `has_synced`.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use std::collections::BTreeMap;
/// use windlass::fifo::{DeltaFifo, Deleted, ObjectDelta, ProcessOutcome, Queue};
///
/// let mut queue = DeltaFifo::new(|pod: &(&'static str, u32)| Ok(pod.0));
/// let mut store = BTreeMap::from([("web-0", ("web-0", 1)), ("web-1", ("web-1", 1))]);
/// queue.replace(vec![("web-1", 2)], "7", &store);
///
/// let mut popped = Vec::new();
/// while queue.pop(|item, _| { popped.push(item.clone()); ProcessOutcome::<()>::Done }).is_some() {}
/// assert_eq!(popped[0].deltas, [ObjectDelta::Replaced(("web-1", 2))]);
/// assert_eq!(popped[1].deltas, [ObjectDelta::Deleted(Deleted::missed(Some(("web-0", 1))))]);
/// ```
pub struct DeltaFifo<K, T> {
    /// Names and trims objects.
    rules: Rules<K, T>,
    /// The keys that wait, in the order of their first delta.
    order: VecDeque<K>,
    /// The deltas by key.
    places: BTreeMap<K, QueuedDeltas<T>>,
    /// Whether anything was queued: an empty queue has not synced before.
    is_populated: bool,
    /// Places of the first list that were not taken out.
    initial: usize,
    /// Whether listed objects become `Sync` deltas.
    lists_as_sync: bool,
}

/// The waiting deltas of a key.
struct QueuedDeltas<T> {
    /// Oldest first.
    deltas: Vec<ObjectDelta<T>>,
    /// Whether the place belongs to the first list.
    is_initial: bool,
}

impl<K, T> fmt::Debug for DeltaFifo<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifo")
            .field("keys", &self.order.len())
            .field("initial", &self.initial)
            .finish_non_exhaustive()
    }
}

impl<K: Ord + Clone + fmt::Debug, T: Clone> DeltaFifo<K, T> {
    /// Creates an empty queue of objects that `key` names.
    pub fn new(key: impl Fn(&T) -> Result<K, BoxError> + Send + Sync + 'static) -> Self {
        Self {
            rules: Rules::new(key),
            order: VecDeque::new(),
            places: BTreeMap::new(),
            is_populated: false,
            initial: 0,
            lists_as_sync: false,
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

    /// Queues listed objects as `Sync` instead of `Replaced`, as client-go once did.
    #[must_use]
    pub fn lists_as_sync(mut self) -> Self {
        self.lists_as_sync = true;
        self
    }

    /// Returns the waiting deltas of `key`, oldest first.
    pub fn get(&self, key: &K) -> Option<&[ObjectDelta<T>]> {
        self.places.get(key).map(|place| &*place.deltas)
    }

    fn push(&mut self, key: K, delta: ObjectDelta<T>, is_initial: bool) {
        if let Some(place) = self.places.get_mut(&key) {
            return merge(&mut place.deltas, delta);
        }
        self.order.push_back(key.clone());
        self.places.insert(key, QueuedDeltas { deltas: vec![delta], is_initial });
        self.initial += usize::from(is_initial);
    }

    /// Queues tombstones for all objects that `listed` lacks.
    fn enqueue_tombstones(
        &mut self,
        listed: &BTreeSet<K>,
        known: &dyn KeyListerGetter<K, T>,
        is_initial: bool,
    ) {
        let queued: Vec<K> =
            self.order.iter().filter(|key| !listed.contains(key)).cloned().collect();
        for key in queued {
            // The queued state is newer than the known state, so the tombstone carries the queued
            // state.
            let newest = self.places.get(&key).and_then(|place| place.deltas.last());
            let last_known = newest.and_then(ObjectDelta::object).cloned();
            self.push(key, ObjectDelta::Deleted(Deleted::missed(last_known)), is_initial);
        }
        for key in known.keys() {
            // Queued keys got their tombstones above.
            if !listed.contains(&key) && !self.places.contains_key(&key) {
                let last_known = known.get(&key);
                self.push(key, ObjectDelta::Deleted(Deleted::missed(last_known)), is_initial);
            }
        }
    }
}

/// Adds a delta; of two deletions in a row the deletion that was seen wins.
fn merge<T>(deltas: &mut Vec<ObjectDelta<T>>, delta: ObjectDelta<T>) {
    match (deltas.last_mut(), delta) {
        (Some(ObjectDelta::Deleted(before)), ObjectDelta::Deleted(after)) => {
            // A later tombstone was made from the queued state and adds nothing.
            if after.certain {
                *before = after;
            }
        }
        (_, delta) => deltas.push(delta),
    }
}

impl<K: Ord + Clone + fmt::Debug, T: Clone> Queue for DeltaFifo<K, T> {
    type Key = K;
    type Object = T;
    type Popped = Deltas<K, T>;

    fn rules(&self) -> &Rules<K, T> {
        &self.rules
    }

    fn enter(&mut self, key: K, delta: ObjectDelta<T>, known: &dyn KeyListerGetter<K, T>) {
        self.is_populated = true;
        let is_deletion = matches!(delta, ObjectDelta::Deleted(_));
        // The consumer does not know the object, so there is nothing to delete.
        if is_deletion && !self.places.contains_key(&key) && !known.contains(&key) {
            return;
        }
        self.push(key, delta, false);
    }

    fn enter_list(&mut self, list: Replacement<K, T>, known: &dyn KeyListerGetter<K, T>) {
        // Only the first list counts for `has_synced`, and only if nothing was queued before the
        // list.
        let is_initial = !self.is_populated;
        self.is_populated = true;
        let listed: BTreeSet<K> = list.objects.iter().map(|(key, _)| key.clone()).collect();
        for (key, object) in list.objects {
            let delta = if self.lists_as_sync {
                ObjectDelta::Sync(object)
            } else {
                ObjectDelta::Replaced(object)
            };
            self.push(key, delta, is_initial);
        }
        // An object that could not be named may be among the missing objects: no tombstones then.
        if list.is_whole {
            self.enqueue_tombstones(&listed, known, is_initial);
        }
    }

    fn resync(&mut self, known: &dyn KeyListerGetter<K, T>) {
        for key in known.keys() {
            // A `Sync` behind queued deltas would bring an older state back.
            if !self.places.contains_key(&key)
                && let Some(object) = known.get(&key)
            {
                self.push(key, ObjectDelta::Sync(object), false);
            }
        }
    }

    fn take(&mut self) -> Option<QueueItem<Deltas<K, T>>> {
        loop {
            let key = self.order.pop_front()?;
            let Some(QueuedDeltas { deltas, is_initial }) = self.places.remove(&key) else {
                continue;
            };
            self.initial -= usize::from(is_initial);
            return Some(QueueItem { item: Deltas { key, deltas }, is_initial });
        }
    }

    fn give_back(&mut self, taken: QueueItem<Deltas<K, T>>) {
        let Deltas { key, deltas } = taken.item;
        // Deltas that were queued meanwhile are newer, and win.
        if !self.places.contains_key(&key) {
            self.order.push_back(key.clone());
            self.places.insert(key, QueuedDeltas { deltas, is_initial: false });
        }
    }

    fn states(item: &Deltas<K, T>) -> Vec<(K, Option<T>)> {
        vec![(item.key.clone(), item.newest().and_then(ObjectDelta::state).cloned())]
    }

    fn has_synced(&self) -> bool {
        self.is_populated && self.initial == 0
    }

    fn len(&self) -> usize {
        self.order.len()
    }
}
