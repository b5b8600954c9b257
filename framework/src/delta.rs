//! The ordered hand-off between the network and the store.
//!
//! A reflector may read faster than the store applies. [`DeltaQueue`] keeps keys in the order in
//! which they first came and at most two deltas of each (a deletion, then the successor), so its
//! size is bounded by the number of objects however often they change.
//!
//! It never blocks, never loses a deletion, and knows nothing about watches, tasks or JSON.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use crate::resource::ObjectKey;

/// What a [`DeltaQueue`] must know of its objects.
pub trait Keyed {
    /// Which object this is a state of.
    fn key(&self) -> &ObjectKey;

    /// Is this state older or newer than `other`? `None` when that cannot be told; then the one
    /// that came later wins.
    fn order(&self, other: &Self) -> Option<Ordering>;

    /// `again` came later and is not newer: takes over that the object was seen again.
    fn seen_again(&mut self, again: &Self);
}

/// One entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta<T, M> {
    /// The object is in this state.
    Put(T),
    /// The object is gone; this is its last state.
    Delete(T),
    /// Something about the stream itself: everything queued before it happened before it.
    Mark(M),
}

/// Deltas of many keys: ordered, compressed, bounded by whoever asks [`len`](Self::len).
#[derive(Debug)]
pub struct DeltaQueue<T, M> {
    order: VecDeque<Entry<M>>,
    pending: BTreeMap<ObjectKey, Pending<T>>,
    deltas: usize,
    dropped: u64,
}

#[derive(Debug)]
enum Entry<M> {
    Key(ObjectKey),
    Mark(M),
}

/// A deletion, then a state, or one of the two.
#[derive(Debug)]
struct Pending<T> {
    deleted: Option<T>,
    state: Option<T>,
}

impl<T, M> Default for DeltaQueue<T, M> {
    fn default() -> Self {
        Self { order: VecDeque::new(), pending: BTreeMap::new(), deltas: 0, dropped: 0 }
    }
}

impl<T: Keyed, M> DeltaQueue<T, M> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of deltas that [`take`](Self::take) would hand out in the end.
    pub fn len(&self) -> usize {
        self.deltas
    }

    /// Is nothing queued?
    pub fn is_empty(&self) -> bool {
        self.deltas == 0
    }

    /// Adds a delta, merging it with what is queued of its key. A state that is older than the
    /// queued one is dropped and counted.
    pub fn push(&mut self, delta: Delta<T, M>) {
        match delta {
            Delta::Put(state) => self.put(state),
            Delta::Delete(last) => self.delete(last),
            Delta::Mark(mark) => {
                self.order.push_back(Entry::Mark(mark));
                self.deltas += 1;
            }
        }
    }

    fn put(&mut self, state: T) {
        let Some(pending) = self.pending.get_mut(state.key()) else {
            let key = state.key().clone();
            return self.enter(key, Pending { deleted: None, state: Some(state) });
        };
        if let Some(newest) = pending.state.as_mut().or(pending.deleted.as_mut())
            && matches!(state.order(newest), Some(Ordering::Less | Ordering::Equal))
        {
            newest.seen_again(&state);
            self.dropped += 1;
            return;
        }
        self.deltas += usize::from(pending.state.is_none());
        pending.state = Some(state);
    }

    fn delete(&mut self, last: T) {
        let Some(pending) = self.pending.get_mut(last.key()) else {
            let key = last.key().clone();
            return self.enter(key, Pending { deleted: Some(last), state: None });
        };
        // A deletion may carry the version of the last state.
        if let Some(newest) = pending.state.as_ref().or(pending.deleted.as_ref())
            && last.order(newest) == Some(Ordering::Less)
        {
            self.dropped += 1;
            return;
        }
        self.deltas -= usize::from(pending.state.is_some() && pending.deleted.is_some());
        *pending = Pending { deleted: Some(last), state: None };
    }

    fn enter(&mut self, key: ObjectKey, pending: Pending<T>) {
        self.order.push_back(Entry::Key(key.clone()));
        self.pending.insert(key, pending);
        self.deltas += 1;
    }

    /// Takes out the first deltas, at least `most` of them when so many are there (one more, when
    /// the last key has two).
    pub fn take(&mut self, most: usize) -> Vec<Delta<T, M>> {
        let mut taken = Vec::with_capacity(self.deltas.min(most.saturating_add(1)));
        while taken.len() < most {
            match self.order.pop_front() {
                None => break,
                Some(Entry::Mark(mark)) => taken.push(Delta::Mark(mark)),
                Some(Entry::Key(key)) => {
                    if let Some(pending) = self.pending.remove(&key) {
                        taken.extend(pending.deleted.map(Delta::Delete));
                        taken.extend(pending.state.map(Delta::Put));
                    }
                }
            }
        }
        self.deltas -= taken.len();
        taken
    }

    /// How many states were dropped because they were not newer, since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct State {
        key: ObjectKey,
        uid: u8,
        version: u32,
        seen: u32,
    }

    impl Keyed for State {
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
                _ => Delta::Mark("|"),
            });
        }
        queue
    }

    fn told(deltas: &[Delta<State, &'static str>]) -> String {
        let told: Vec<_> = deltas
            .iter()
            .map(|delta| match delta {
                Delta::Put(state) => format!("+{}{}", state.key, state.version),
                Delta::Delete(state) => format!("-{}{}", state.key, state.version),
                Delta::Mark(mark) => (*mark).to_owned(),
            })
            .collect();
        told.join(" ")
    }

    #[track_caller]
    fn check(events: &str, expected: &str) {
        let mut queue = queue(events);
        let length = queue.len();
        let taken = queue.take(usize::MAX);
        assert_eq!(told(&taken), expected, "{events}");
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
        // A merge keeps the first place; the mark may then see a later state of a, never an older.
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
        assert_eq!(told(&queue.take(2)), "+a0 -b1 +b2");
        assert_eq!(queue.len(), 1);
        assert_eq!(told(&queue.take(2)), "+c3");
    }

    /// The naive model: every event is kept, and applied one by one.
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
        /// G-C6: whatever is merged, the end is the model's, and a deletion of what was there
        /// before is told before the successor.
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
            let mut told: BTreeMap<ObjectKey, Vec<bool>> = BTreeMap::new();
            let mut order: Vec<ObjectKey> = Vec::new();
            for delta in taken {
                let (state, is_put) = match delta {
                    Delta::Put(state) => (state, true),
                    Delta::Delete(state) => (state, false),
                    Delta::Mark(()) => continue,
                };
                told.entry(state.key.clone()).or_default().push(is_put);
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
            for (key, told) in told {
                prop_assert!(told == [true] || told == [false] || told == [false, true]);
                if model.deleted_uids.contains_key(&key) {
                    prop_assert!(!told[0], "a deletion of {} was lost", key);
                }
            }
        }
    }
}
