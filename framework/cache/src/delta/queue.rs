//! The ordered queue that informers run on.
//!
//! A reflector may read faster than the store applies. [`DeltaQueue`] keeps keys in the order in
//! which they first came and at most two deltas of each (a deletion, then the successor), so the
//! number of objects bounds the queue's size, however often objects change.
//!
//! The queue never blocks, never loses a deletion, and knows nothing about watches, tasks or JSON.
//!
//! Invariant: the number of every slot with a key is in `by_key` under the key's hash; the slot of
//! number `n` is at `n - first` in `order`. So a key is found without a copy, and taking from the
//! front moves no other slot.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use windlass_core::resource::ObjectKey;

/// Capacity, in entries, that an empty queue keeps; the memory of more is freed.
const KEPT_ENTRIES: usize = 1024;

/// The properties of objects that a [`DeltaQueue`] needs.
///
/// Implemented by the caller's state of an object, which the queue moves and never clones.
pub trait DeltaItem {
    /// The key of the object.
    fn key(&self) -> &ObjectKey;

    /// Compares the ages of two states of an object. `None` if the ages do not compare; then the
    /// state that came later wins.
    fn order(&self, other: &Self) -> Option<Ordering>;

    /// Merges a later arrival `again`, which is not newer, into this state: the object was seen
    /// again.
    fn seen_again(&mut self, again: &Self);
}

/// An entry of the queue.
///
/// Deltas of different keys keep the order of their keys' first deltas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta<T, M> {
    /// The object is in this state.
    Put(T),
    /// The object is gone; the value is the last state.
    Delete(T),
    /// A mark in the stream: all deltas that were queued before the mark happened before the mark.
    StreamMark(M),
}

/// Deltas of many keys: ordered and merged by key. The producer bounds the queue by
/// [`len`](Self::len).
///
/// - A key keeps the place of the key's first delta; later deltas are merged there.
/// - The newest state wins; a state that is not newer is dropped and counted.
/// - A deletion replaces the earlier states, and is handed out before the later state. Only a newer
///   deletion replaces a deletion.
/// - A mark is never merged.
///
/// Adding and taking cost O(1) and copy no key.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use std::cmp::Ordering;
/// use windlass::delta::{Delta, DeltaQueue, DeltaItem};
/// use windlass::resource::ObjectKey;
///
/// #[derive(Debug, PartialEq)]
/// struct State(ObjectKey, u32);
///
/// impl DeltaItem for State {
///     fn key(&self) -> &ObjectKey {
///         &self.0
///     }
///     fn order(&self, other: &Self) -> Option<Ordering> {
///         Some(self.1.cmp(&other.1))
///     }
///     fn seen_again(&mut self, _again: &Self) {}
/// }
///
/// let (a, b) = (ObjectKey::new(None, "a"), ObjectKey::new(None, "b"));
/// let mut queue: DeltaQueue<State, &str> = DeltaQueue::new();
/// queue.push(Delta::Put(State(a.clone(), 1)));
/// queue.push(Delta::Put(State(b.clone(), 2)));
/// queue.push(Delta::Put(State(a.clone(), 3)));
/// queue.push(Delta::StreamMark("all shown"));
/// assert_eq!(
///     queue.take(10),
///     [Delta::Put(State(a, 3)), Delta::Put(State(b, 2)), Delta::StreamMark("all shown")],
/// );
/// ```
pub struct DeltaQueue<T, M> {
    /// The slots, oldest first.
    order: VecDeque<QueueSlot<T, M>>,
    /// Number of the first slot in `order`; slots are numbered from the queue's beginning.
    first: u64,
    /// The numbers of the slots with a key, by the key's hash. Never iterated.
    by_key: HashTable<u64>,
    /// Hashes keys; random, because the order of the queue does not depend on the hashes.
    hasher: RandomState,
    /// Number of deltas in all slots.
    deltas: usize,
    /// Number of states that were not newer, since the last look.
    dropped: u64,
}

/// A place in the order: the deltas of a key, or a mark.
enum QueueSlot<T, M> {
    /// The deltas of a key, with its hash.
    Key {
        hash: u64,
        pending: Pending<T>,
    },
    StreamMark(M),
}

/// The queued deltas of a key.
enum Pending<T> {
    /// The state after all deltas.
    Put(T),
    /// The object is gone.
    Delete(T),
    /// A deletion, then the successor.
    Both(T, T),
    /// A placeholder while a slot is being changed.
    Taken,
}

impl<T> Pending<T> {
    /// Returns the state that was pushed last.
    fn newest(&self) -> Option<&T> {
        match self {
            Self::Put(state) | Self::Delete(state) | Self::Both(_, state) => Some(state),
            Self::Taken => None,
        }
    }

    /// As `newest`, to merge into that delta.
    fn newest_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Put(state) | Self::Delete(state) | Self::Both(_, state) => Some(state),
            Self::Taken => None,
        }
    }
}

impl<T, M> Default for DeltaQueue<T, M> {
    fn default() -> Self {
        Self {
            order: VecDeque::new(),
            first: 0,
            by_key: HashTable::new(),
            hasher: RandomState::new(),
            deltas: 0,
            dropped: 0,
        }
    }
}

impl<T, M> Debug for DeltaQueue<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaQueue")
            .field("deltas", &self.deltas)
            .field("dropped", &self.dropped)
            .finish_non_exhaustive()
    }
}

impl<T: DeltaItem, M> DeltaQueue<T, M> {
    /// Creates an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of deltas that [`take`](Self::take) would hand out in the end.
    pub fn len(&self) -> usize {
        self.deltas
    }

    /// Whether no delta is queued.
    pub fn is_empty(&self) -> bool {
        self.deltas == 0
    }

    /// Adds a delta and merges the delta with those of the key. A state that is older than the
    /// queued state is dropped and counted.
    pub fn push(&mut self, delta: Delta<T, M>) {
        match delta {
            Delta::Put(state) => self.put(state),
            Delta::Delete(last) => self.delete(last),
            Delta::StreamMark(mark) => {
                self.order.push_back(QueueSlot::StreamMark(mark));
                self.deltas += 1;
            }
        }
    }

    fn put(&mut self, state: T) {
        let hash = self.hasher.hash_one(state.key());
        let Some(pending) = self.pending(hash, state.key()) else {
            return self.enter(hash, Pending::Put(state));
        };
        // Not newer: only the fact that the object was seen again is kept.
        if let Some(newest) = pending.newest_mut()
            && matches!(state.order(newest), Some(Ordering::Less | Ordering::Equal))
        {
            newest.seen_again(&state);
            self.dropped += 1;
            return;
        }
        let (merged, more) = match std::mem::replace(pending, Pending::Taken) {
            Pending::Put(_) | Pending::Taken => (Pending::Put(state), 0),
            Pending::Delete(deleted) => (Pending::Both(deleted, state), 1),
            Pending::Both(deleted, _) => (Pending::Both(deleted, state), 0),
        };
        *pending = merged;
        self.deltas += more;
    }

    fn delete(&mut self, last: T) {
        let hash = self.hasher.hash_one(last.key());
        let Some(pending) = self.pending(hash, last.key()) else {
            return self.enter(hash, Pending::Delete(last));
        };
        // A deletion may carry the version of the last state, so only an older deletion is dropped.
        if let Some(newest) = pending.newest()
            && last.order(newest) == Some(Ordering::Less)
        {
            self.dropped += 1;
            return;
        }
        // A deletion and its successor become a single deletion: one delta less.
        let fewer = usize::from(matches!(pending, Pending::Both(..)));
        *pending = Pending::Delete(last);
        self.deltas -= fewer;
    }

    fn enter(&mut self, hash: u64, pending: Pending<T>) {
        let number = self.first + self.order.len() as u64;
        self.order.push_back(QueueSlot::Key { hash, pending });
        let (order, first) = (&self.order, self.first);
        self.by_key.insert_unique(hash, number, |number| slot_hash(order, first, *number));
        self.deltas += 1;
    }

    /// Returns the queued deltas of a key.
    fn pending(&mut self, hash: u64, key: &ObjectKey) -> Option<&mut Pending<T>> {
        let (order, first) = (&self.order, self.first);
        let number = *self.by_key.find(hash, |number| {
            let pending = slot(order, first, *number);
            pending.and_then(Pending::newest).is_some_and(|state| state.key() == key)
        })?;
        match self.order.get_mut(usize::try_from(number - self.first).ok()?)? {
            QueueSlot::Key { pending, .. } => Some(pending),
            QueueSlot::StreamMark(_) => None,
        }
    }

    /// Takes out the first deltas: `most` of them if there are that many, and another if the last
    /// key has two.
    pub fn take(&mut self, most: usize) -> Vec<Delta<T, M>> {
        let mut taken = Vec::with_capacity(self.deltas.min(most.saturating_add(1)));
        while taken.len() < most {
            let Some(slot) = self.order.pop_front() else { break };
            let number = self.first;
            self.first += 1;
            match slot {
                QueueSlot::StreamMark(mark) => taken.push(Delta::StreamMark(mark)),
                QueueSlot::Key { hash, pending } => {
                    // Merging ends here: a later delta of the key gets a new slot.
                    if let Ok(entry) = self.by_key.find_entry(hash, |other| *other == number) {
                        entry.remove();
                    }
                    match pending {
                        Pending::Put(state) => taken.push(Delta::Put(state)),
                        Pending::Delete(last) => taken.push(Delta::Delete(last)),
                        Pending::Both(last, state) => {
                            taken.extend([Delta::Delete(last), Delta::Put(state)]);
                        }
                        Pending::Taken => {}
                    }
                }
            }
        }
        self.deltas -= taken.len();
        // The burst of a first list must not retain that memory.
        if self.order.is_empty() && self.order.capacity() > KEPT_ENTRIES {
            self.order.shrink_to(KEPT_ENTRIES);
            self.by_key = HashTable::new();
        }
        taken
    }

    /// Returns the number of states that were dropped because they were not newer, since the last
    /// call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

fn slot<T, M>(order: &VecDeque<QueueSlot<T, M>>, first: u64, number: u64) -> Option<&Pending<T>> {
    match order.get(usize::try_from(number - first).ok()?)? {
        QueueSlot::Key { pending, .. } => Some(pending),
        QueueSlot::StreamMark(_) => None,
    }
}

fn slot_hash<T, M>(order: &VecDeque<QueueSlot<T, M>>, first: u64, number: u64) -> u64 {
    match usize::try_from(number - first).ok().and_then(|at| order.get(at)) {
        Some(QueueSlot::Key { hash, .. }) => *hash,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct State {
        key: ObjectKey,
        uid: u8,
        version: u32,
        seen: u32,
    }

    impl DeltaItem for State {
        fn key(&self) -> &ObjectKey {
            &self.key
        }
        fn order(&self, other: &Self) -> Option<Ordering> {
            Some(self.version.cmp(&other.version))
        }
        fn seen_again(&mut self, again: &Self) {
            self.seen = self.seen.max(again.seen);
        }
    }

    type Queue = DeltaQueue<State, &'static str>;

    /// `+a`: put, `-a`: delete, `|`: mark; versions count up.
    fn queue(events: &str) -> Queue {
        let mut queue = Queue::new();
        for (version, event) in events.split(' ').enumerate() {
            let state = |name: &str| State {
                key: ObjectKey::new(None, name),
                uid: 0,
                version: version as u32,
                seen: version as u32,
            };
            queue.push(match event.split_at(1) {
                ("+", name) => Delta::Put(state(name)),
                ("-", name) => Delta::Delete(state(name)),
                _ => Delta::StreamMark("|"),
            });
        }
        queue
    }

    fn shown(deltas: &[Delta<State, &'static str>]) -> String {
        let shown: Vec<_> = deltas
            .iter()
            .map(|delta| match delta {
                Delta::Put(state) => format!("+{}{}", state.key, state.version),
                Delta::Delete(state) => format!("-{}{}", state.key, state.version),
                Delta::StreamMark(mark) => (*mark).to_owned(),
            })
            .collect();
        shown.join(" ")
    }

    #[track_caller]
    fn check(events: &str, expected: &str) {
        let mut queue = queue(events);
        let length = queue.len();
        let taken = queue.take(usize::MAX);
        assert_eq!(shown(&taken), expected, "{events}");
        assert_eq!((length, queue.len()), (taken.len(), 0), "{events}");
    }

    #[test]
    fn a_key_keeps_the_place_of_its_first_arrival_and_the_value_of_its_last() {
        check("+a +b +a", "+a2 +b1");
    }

    #[test]
    fn a_deletion_swallows_what_came_before_it_and_is_never_swallowed() {
        check("+a -a", "-a1");
        check("-a +a", "-a0 +a1");
        check("+a -a +a", "-a1 +a2");
        check("-a +a -a", "-a2");
        check("-a +a +a +b", "-a0 +a2 +b3");
    }

    #[test]
    fn what_stands_before_a_mark_is_handed_out_before_it() {
        check("+a | +b", "+a0 | +b2");
        // A merge keeps the first place: the mark may then follow a later state, never an older.
        check("+a | +a", "+a2 |");
    }

    #[test]
    fn an_older_state_never_replaces_a_newer_one() {
        let state = |version, seen| State { key: ObjectKey::new(None, "a"), uid: 0, version, seen };
        let mut queue = Queue::new();
        queue.push(Delta::Put(state(5, 1)));
        queue.push(Delta::Put(state(4, 2)));
        queue.push(Delta::Delete(state(3, 3)));
        queue.push(Delta::Put(state(5, 4)));
        assert_eq!(queue.take(9), [Delta::Put(state(5, 4))]);
        assert_eq!(queue.take_dropped(), 3);
        queue.push(Delta::Delete(state(6, 0)));
        queue.push(Delta::Put(state(6, 0)));
        assert_eq!(queue.take(9), [Delta::Delete(state(6, 0))]);
    }

    #[test]
    fn take_hands_out_a_part_and_keeps_the_rest_in_order() {
        let mut queue = queue("+a -b +b +c");
        assert_eq!(shown(&queue.take(2)), "+a0 -b1 +b2");
        assert_eq!(queue.len(), 1);
        assert_eq!(shown(&queue.take(2)), "+c3");
    }

    /// The naive model: every event is kept, and applied separately.
    #[derive(Default)]
    struct Model {
        live: BTreeMap<ObjectKey, State>,
        newest: BTreeMap<ObjectKey, u32>,
        first: Vec<ObjectKey>,
        deleted_uids: BTreeMap<ObjectKey, Vec<u8>>,
    }

    impl Model {
        fn put(&mut self, state: &State) {
            if self.newest.get(&state.key).is_none_or(|newest| *newest < state.version) {
                self.newest.insert(state.key.clone(), state.version);
                self.live.insert(state.key.clone(), state.clone());
                self.enter(&state.key);
            }
        }

        fn delete(&mut self, state: &State) {
            if self.newest.get(&state.key).is_none_or(|newest| *newest <= state.version) {
                self.newest.insert(state.key.clone(), state.version);
                if let Some(live) = self.live.remove(&state.key) {
                    self.deleted_uids.entry(state.key.clone()).or_default().push(live.uid);
                }
                self.enter(&state.key);
            }
        }

        fn enter(&mut self, key: &ObjectKey) {
            if !self.first.contains(key) {
                self.first.push(key.clone());
            }
        }
    }

    proptest! {
        /// G-C6 (each listener is notified after any change): regardless of merging, the final
        /// state is the model's, and a deletion of an earlier object is handed out before the
        /// successor.
        #[test]
        fn it_ends_where_every_single_event_would_have_ended(
            events in proptest::collection::vec((0_u8..4, any::<bool>(), 1_u32..40), 1..60)
        ) {
            let mut queue: DeltaQueue<State, ()> = DeltaQueue::new();
            let mut model = Model::default();
            for (name, is_put, version) in events {
                let state = State {
                    key: ObjectKey::new(None, &name.to_string()),
                    uid: (version / 8) as u8,
                    version,
                    seen: 0,
                };
                if is_put { model.put(&state) } else { model.delete(&state) }
                queue.push(if is_put { Delta::Put(state) } else { Delta::Delete(state) });
            }
            let length = queue.len();
            let taken = queue.take(usize::MAX);
            prop_assert_eq!(length, taken.len());
            let mut live = BTreeMap::new();
            let mut shown: BTreeMap<ObjectKey, Vec<bool>> = BTreeMap::new();
            let mut order: Vec<ObjectKey> = Vec::new();
            for delta in taken {
                let (state, is_put) = match delta {
                    Delta::Put(state) => (state, true),
                    Delta::Delete(state) => (state, false),
                    Delta::StreamMark(()) => continue,
                };
                shown.entry(state.key.clone()).or_default().push(is_put);
                if order.last() != Some(&state.key) {
                    order.push(state.key.clone());
                }
                if is_put {
                    live.insert(state.key.clone(), state);
                } else {
                    live.remove(&state.key);
                }
            }
            prop_assert_eq!(&live, &model.live);
            prop_assert_eq!(&order, &model.first);
            for (key, shown) in shown {
                prop_assert!(shown == [true] || shown == [false] || shown == [false, true]);
                if model.deleted_uids.contains_key(&key) {
                    prop_assert!(!shown[0], "a deletion of {} was lost", key);
                }
            }
        }
    }
}
