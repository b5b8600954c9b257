//! Per-object state that most objects lack. An atomic length lets lookups skip the lock while the
//! collection is empty.
//!
//! Every reconcile looks such state up. A lock that all workers of a controller take makes the
//! workers contend for the lock's cache line, whether or not the collection is empty. For a
//! collection that often has entries, objects are spread over several locks: [`ShardedMap`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::hash::BuildHasher;
use std::ops::{Deref, DerefMut};

use foldhash::fast::FixedState;
use parking_lot::MutexGuard;

use windlass_core::resource::ObjectKey;
use windlass_core::sync::{AtomicUsize, CachePadded, Mutex, Ordering};

/// Number of locks of a [`ShardedMap`]. A power of two.
const SHARDS: usize = 16;

/// A collection under a lock, with the length beside it.
#[derive(Default)]
pub(crate) struct SparseLock<C> {
    all: Mutex<C>,
    /// Length of the collection when the lock was last released.
    len: AtomicUsize,
}

/// Collections with a length.
pub(crate) trait Len {
    fn len(&self) -> usize;
}

impl<K, V> Len for BTreeMap<K, V> {
    fn len(&self) -> usize {
        self.len()
    }
}

impl<K> Len for BTreeSet<K> {
    fn len(&self) -> usize {
        self.len()
    }
}

impl<K, V, S> Len for HashMap<K, V, S> {
    fn len(&self) -> usize {
        self.len()
    }
}

impl<C: Len> SparseLock<C> {
    /// Locks the collection for an addition.
    pub(crate) fn lock(&self) -> Locked<'_, C> {
        Locked { all: self.all.lock(), len: &self.len }
    }

    /// Locks the collection, unless empty. An addition that happened before the call is found.
    pub(crate) fn lock_if_any(&self) -> Option<Locked<'_, C>> {
        // Acquire, with the release in `Locked::drop`: an addition before is seen.
        (self.len.load(Ordering::Acquire) > 0).then(|| self.lock())
    }
}

/// Collections of per-object state, spread over several locks by key.
#[derive(Debug)]
pub(crate) struct ShardedMap<C>(Box<[CachePadded<SparseLock<C>>]>);

impl<C: Default> Default for ShardedMap<C> {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| CachePadded::default()).collect())
    }
}

impl<C> ShardedMap<C> {
    /// Returns the collection for that object.
    pub(crate) fn of(&self, key: &ObjectKey) -> &SparseLock<C> {
        let hash = FixedState::with_seed(0).hash_one(key);
        &self.0[(hash >> 32) as usize % SHARDS]
    }
}

#[cfg(test)]
impl<C: Len> ShardedMap<C> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|part| part.lock_if_any().is_none())
    }
}

impl<C> fmt::Debug for SparseLock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparseLock").field("len", &self.len).finish_non_exhaustive()
    }
}

/// The locked collection; updates the length on drop.
pub(crate) struct Locked<'a, C: Len> {
    all: MutexGuard<'a, C>,
    len: &'a AtomicUsize,
}

impl<C: Len> Deref for Locked<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.all
    }
}

impl<C: Len> DerefMut for Locked<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        &mut self.all
    }
}

impl<C: Len> Drop for Locked<'_, C> {
    fn drop(&mut self) {
        // Before the unlock: `all` is dropped after this.
        self.len.store(self.all.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_takes_the_lock_only_while_there_is_an_entry() {
        let notes: SparseLock<BTreeMap<u8, u8>> = SparseLock::default();
        assert!(notes.lock_if_any().is_none());
        notes.lock().insert(1, 2);
        assert_eq!(notes.lock_if_any().and_then(|mut notes| notes.remove(&1)), Some(2));
        assert!(notes.lock_if_any().is_none());
        let held = notes.lock();
        assert!(notes.lock_if_any().is_none(), "it waits for no lock");
        drop(held);
    }

    #[test]
    fn notes_of_many_objects_are_spread_and_found_by_their_key() {
        let notes: ShardedMap<BTreeMap<ObjectKey, usize>> = ShardedMap::default();
        let key = |number: usize| ObjectKey::new(Some("shop"), &number.to_string());
        for number in 0..100 {
            notes.of(&key(number)).lock().insert(key(number), number);
        }
        assert!(notes.0.iter().all(|part| part.lock().len() < 25));
        for number in 0..100 {
            let mut part = notes.of(&key(number)).lock_if_any().expect("some");
            assert_eq!(part.remove(&key(number)), Some(number));
        }
        assert!(notes.is_empty());
    }

    #[test]
    fn an_added_entry_is_found_after_a_panic_too() {
        let notes: SparseLock<BTreeSet<u8>> = SparseLock::default();
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut held = notes.lock();
            held.insert(7);
            panic!("no such luck");
        }));
        assert!(panic.is_err());
        assert!(notes.lock_if_any().is_some_and(|notes| notes.contains(&7)));
    }
}
