//! The cached objects that are known not to decode.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::object::Object;
use windlass_core::resource::ObjectKey;

/// Error of an object whose bytes do not decode into the type. Metadata and raw bytes can still be
/// read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The error of serde, with the path.
    pub message: Arc<str>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object does not decode into its type: {}", self.message)
    }
}

impl std::error::Error for Invalid {}

/// Receives objects that did not decode; the store. Called by readers, and only after a failure.
pub(in crate::store) trait InvalidSink: Send + Sync {
    /// Records that `object` did not decode into the type `of`, unless the object was replaced.
    fn note_invalid(&self, object: &Arc<Object>, of: TypeId, message: &Arc<str>);
}

/// The objects of a store that did not decode.
#[derive(Default)]
pub(in crate::store) struct Invalids {
    known: Mutex<BTreeMap<ObjectKey, InvalidRecord>>,
    /// Whether there is any; checked by every read that decodes, without the lock.
    ///
    /// A `false` that is out of date does no harm. Changes of the store, which mark findings as
    /// outdated, are ordered with `add` by the store's lock. A read that misses a finding decodes
    /// the object once more; a report that misses it is right a moment later.
    is_any: AtomicBool,
}

/// A finding about an object.
struct InvalidRecord {
    message: Arc<str>,
    /// The type into which the object does not decode.
    of: TypeId,
    object: Arc<Object>,
    /// The object has changed since, and the new state was not read yet.
    is_outdated: bool,
}

/// Difference of a finding from earlier findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum InvalidChange {
    /// The object was not known to be invalid.
    First,
    /// The object was invalid for another reason.
    Another,
    /// The finding is known.
    Nothing,
}

impl Invalids {
    /// Records that `object`, which is in the store, does not decode into the type `of`.
    pub(in crate::store) fn add(
        &self,
        object: &Arc<Object>,
        of: TypeId,
        message: &Arc<str>,
    ) -> InvalidChange {
        let (message, object) = (Arc::clone(message), Arc::clone(object));
        let found = InvalidRecord { message, of, object, is_outdated: false };
        let mut known = self.known.lock();
        // Set before the entry is inserted: a reader that sees the flag waits for the lock.
        self.is_any.store(true, Ordering::Release);
        match known.entry(found.object.key().clone()) {
            Entry::Vacant(place) => {
                place.insert(found);
                InvalidChange::First
            }
            Entry::Occupied(mut place) => {
                let before = place.insert(found);
                if before.message == place.get().message {
                    InvalidChange::Nothing
                } else {
                    InvalidChange::Another
                }
            }
        }
    }

    /// Returns the error of decoding this version into the type `of`, if decoding was tried before.
    pub(in crate::store) fn of(&self, object: &Object, of: TypeId) -> Option<Arc<str>> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let known = self.known.lock();
        let found = known.get(object.key())?;
        // By address, not by version: after a store was set back another state may have the same
        // version.
        let is_it = found.of == of && std::ptr::eq(&*found.object, object);
        is_it.then(|| Arc::clone(&found.message))
    }

    /// Handles changes of the store, each a key and the new object: changed objects are to be
    /// decoded anew, deleted objects are forgotten.
    pub(in crate::store) fn changed<'a>(
        &self,
        changes: impl Iterator<Item = (&'a ObjectKey, Option<&'a Arc<Object>>)>,
    ) {
        if !self.is_any.load(Ordering::Acquire) {
            return;
        }
        let mut known = self.known.lock();
        for (key, now) in changes {
            match now {
                None => drop(known.remove(key)),
                Some(new) => {
                    if let Some(known) = known.get_mut(key) {
                        known.is_outdated |= !Arc::ptr_eq(&known.object, new);
                    }
                }
            }
        }
        // Under the lock: an `add` of another thread cannot fall between the check and the store.
        self.is_any.store(!known.is_empty(), Ordering::Release);
    }

    /// Records that `object` decodes into the type `of`; returns true when an earlier state did
    /// not. Decoding into another type proves nothing.
    pub(in crate::store) fn heal(&self, object: &Object, of: TypeId) -> bool {
        if !self.is_any.load(Ordering::Acquire) {
            return false;
        }
        let mut known = self.known.lock();
        let is_it = |known: &InvalidRecord| known.is_outdated && known.of == of;
        let healed =
            known.get(object.key()).is_some_and(is_it) && known.remove(object.key()).is_some();
        // Under the lock, as in `changed`.
        self.is_any.store(!known.is_empty(), Ordering::Release);
        healed
    }

    /// Forgets all findings: the objects reference the state that owns this.
    pub(super) fn clear(&self) {
        let mut known = self.known.lock();
        // Under the lock, as in `changed`.
        self.is_any.store(false, Ordering::Release);
        let before = std::mem::take(&mut *known);
        drop(known);
        // Freed outside of the lock: objects return their buffers.
        drop(before);
    }

    /// Returns the number of objects that do not decode in their current state.
    pub(in crate::store) fn len(&self) -> usize {
        if !self.is_any.load(Ordering::Acquire) {
            return 0;
        }
        self.known.lock().values().filter(|known| !known.is_outdated).count()
    }

    /// Returns the objects that do not decode in their current state, in key order, with the
    /// errors.
    pub(in crate::store) fn list(&self) -> Vec<(Arc<Object>, Arc<str>)> {
        let known = self.known.lock();
        let current = known.values().filter(|known| !known.is_outdated);
        current.map(|known| (Arc::clone(&known.object), Arc::clone(&known.message))).collect()
    }
}
