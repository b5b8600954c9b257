//! The cached objects that are known not to decode, and the observer that is notified of them.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Event, Object};
use crate::resource::ObjectKey;

/// Called when an object is first found not to decode, and when the reason changes. It must not
/// block, and may be called on a reader's thread.
pub(crate) type Observer = Box<dyn Fn(&Arc<Object>, &Arc<str>) + Send + Sync>;

/// The objects of one store that did not decode.
#[derive(Default)]
pub(super) struct Invalids {
    known: Mutex<BTreeMap<ObjectKey, Known>>,
    /// Whether there is any; checked by every read that decodes, without the lock.
    is_any: AtomicBool,
    observer: OnceLock<Observer>,
}

/// A finding about one object.
struct Known {
    message: Arc<str>,
    /// The type into which the object does not decode.
    of: TypeId,
    object: Arc<Object>,
    /// The object has changed since, and the new state was not read yet.
    is_outdated: bool,
}

/// Difference of a finding from the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidChange {
    /// The object was not known to be invalid.
    First,
    /// The object was invalid for another reason.
    Another,
    /// The finding is known.
    Nothing,
}

impl Invalids {
    /// Sets the observer; only once.
    pub(super) fn observe(&self, observer: Observer) {
        // A second observer would be a defect of the informer: the first stays.
        let _ = self.observer.set(observer);
    }

    /// Records that `object`, which is in the store, does not decode into the type `of`.
    pub(super) fn add(
        &self,
        object: &Arc<Object>,
        of: TypeId,
        message: &Arc<str>,
    ) -> InvalidChange {
        let (message, object) = (Arc::clone(message), Arc::clone(object));
        let found = Known { message, of, object, is_outdated: false };
        let mut known = self.known.lock();
        // Set before the entry is inserted: a reader that sees it waits for the lock.
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

    /// Returns the error of decoding this version into the type `of`, if it was tried before.
    pub(super) fn of(&self, object: &Object, of: TypeId) -> Option<Arc<str>> {
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

    /// Notifies the observer. Not under a lock: it is foreign code.
    pub(super) fn tell(&self, object: &Arc<Object>, message: &Arc<str>) {
        if let Some(observer) = self.observer.get() {
            observer(object, message);
        }
    }

    /// Handles changes of the store: changed objects are to be decoded anew, deleted ones are
    /// forgotten.
    pub(super) fn changed(&self, events: &[Event]) {
        if !self.is_any.load(Ordering::Acquire) {
            return;
        }
        let mut known = self.known.lock();
        for event in events {
            match event {
                Event::Deleted { last, .. } => drop(known.remove(last.key())),
                Event::Added { new, .. } | Event::Updated { new, .. } => {
                    if let Some(known) = known.get_mut(new.key()) {
                        known.is_outdated |= !Arc::ptr_eq(&known.object, new);
                    }
                }
            }
        }
        // Under the lock: an `add` of another thread cannot fall between the look and the store.
        self.is_any.store(!known.is_empty(), Ordering::Release);
    }

    /// Records that `object` decodes into the type `of`; returns true when an earlier state did
    /// not. Decoding into another type proves nothing.
    pub(super) fn heal(&self, object: &Object, of: TypeId) -> bool {
        if !self.is_any.load(Ordering::Acquire) {
            return false;
        }
        let mut known = self.known.lock();
        let is_it = |known: &Known| known.is_outdated && known.of == of;
        let healed =
            known.get(object.key()).is_some_and(is_it) && known.remove(object.key()).is_some();
        self.is_any.store(!known.is_empty(), Ordering::Release);
        healed
    }

    /// Returns the number of objects that do not decode in their current state.
    pub(super) fn len(&self) -> usize {
        if !self.is_any.load(Ordering::Acquire) {
            return 0;
        }
        self.known.lock().values().filter(|known| !known.is_outdated).count()
    }

    /// Returns the objects that do not decode in their current state, in key order, with the
    /// errors.
    pub(super) fn list(&self) -> Vec<(Arc<Object>, Arc<str>)> {
        let known = self.known.lock();
        let current = known.values().filter(|known| !known.is_outdated);
        current.map(|known| (Arc::clone(&known.object), Arc::clone(&known.message))).collect()
    }
}
