//! The objects that the consumer of a queue knows already, usually those of the consumer's store.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash};

/// The objects that the consumer of a queue knows, as of the consumer's last finished pop.
///
/// A queue compares lists with the known objects to find deleted objects. `()` knows no objects.
///
/// Implemented for maps, for `()`, and for a consumer's own store:
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use std::collections::BTreeMap;
/// use windlass::fifo::KeyListerGetter;
///
/// let store = BTreeMap::from([("web-0", 1), ("web-1", 2)]);
/// assert!(KeyListerGetter::contains(&store, &"web-1"));
/// assert_eq!(KeyListerGetter::keys(&store), ["web-0", "web-1"]);
/// ```
pub trait KeyListerGetter<K, T> {
    /// Returns the keys, in a deterministic order.
    ///
    /// Called for each list and each resync.
    fn keys(&self) -> Vec<K>;

    /// Returns the object; `None` also when the key is known but the object is not.
    fn get(&self, key: &K) -> Option<T>;

    /// Whether the key is known.
    ///
    /// Override this method when a check is cheaper than a copy of the object.
    fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }
}

impl<K, T> KeyListerGetter<K, T> for () {
    fn keys(&self) -> Vec<K> {
        Vec::new()
    }
    fn get(&self, _key: &K) -> Option<T> {
        None
    }
}

impl<K: Ord + Clone, T: Clone> KeyListerGetter<K, T> for BTreeMap<K, T> {
    fn keys(&self) -> Vec<K> {
        self.keys().cloned().collect()
    }
    fn get(&self, key: &K) -> Option<T> {
        self.get(key).cloned()
    }
}

impl<K: Ord + Hash + Clone, T: Clone, S: BuildHasher> KeyListerGetter<K, T> for HashMap<K, T, S> {
    fn keys(&self) -> Vec<K> {
        let mut keys: Vec<K> = self.keys().cloned().collect();
        // The map's own order is random, and the order of tombstones must not be.
        keys.sort_unstable();
        keys
    }
    fn get(&self, key: &K) -> Option<T> {
        self.get(key).cloned()
    }
}

/// The objects known at some time, plus the changes since: the consumer's store is read without
/// holding the queue's lock.
#[derive(Debug)]
pub(super) struct View<K, T> {
    states: BTreeMap<K, Option<T>>,
}

impl<K: Ord + Clone, T> View<K, T> {
    /// Reads all known objects, without any lock of the queue.
    pub(super) fn of(known: &impl KeyListerGetter<K, T>) -> Self {
        let states = known.keys().into_iter().map(|key| {
            let object = known.get(&key);
            (key, object)
        });
        Self { states: states.collect() }
    }

    /// Reads a single key.
    pub(super) fn of_key(key: &K, known: &impl KeyListerGetter<K, T>) -> Self {
        let is_known = known.contains(key);
        Self { states: is_known.then(|| (key.clone(), known.get(key))).into_iter().collect() }
    }

    /// Applies changes that were processed meanwhile: states by key, `None` for deleted objects.
    pub(super) fn overlay(&mut self, states: &BTreeMap<K, Option<T>>)
    where
        T: Clone,
    {
        for (key, state) in states {
            match state {
                Some(state) => self.states.insert(key.clone(), Some(state.clone())),
                None => self.states.remove(key),
            };
        }
    }

    /// Removes keys that must not be delivered.
    pub(super) fn hide<'a>(&mut self, keys: impl Iterator<Item = &'a K>)
    where
        K: 'a,
    {
        for key in keys {
            self.states.remove(key);
        }
    }
}

impl<K: Ord + Clone, T: Clone> KeyListerGetter<K, T> for View<K, T> {
    fn keys(&self) -> Vec<K> {
        self.states.keys().cloned().collect()
    }
    fn get(&self, key: &K) -> Option<T> {
        self.states.get(key).cloned().flatten()
    }
    fn contains(&self, key: &K) -> bool {
        self.states.contains_key(key)
    }
}
