//! Which cached objects are known not to decode, and who hears of it.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::{Event, Object};
use crate::resource::ObjectKey;

/// Told when an object is first found not to decode, and when the reason changes. It must not wait,
/// and may be called where a reader reads.
pub(crate) type Observer = Box<dyn Fn(&Arc<Object>, &Arc<str>) + Send + Sync>;

/// The objects of one store that did not decode.
#[derive(Default)]
pub(super) struct Invalids {
    known: Mutex<BTreeMap<ObjectKey, Known>>,
    /// Is there any? Asked by every read that decodes.
    is_any: AtomicBool,
    observer: OnceLock<Observer>,
}

struct Known {
    message: Arc<str>,
    /// The type that it does not decode into.
    of: TypeId,
    object: Arc<Object>,
    /// It changed since, and nobody has read it yet.
    is_outdated: bool,
}

/// What a finding is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// The object was well until now, as far as anybody knew.
    First,
    /// It is still not well, for another reason.
    Another,
    /// Nothing new.
    Nothing,
}

impl Invalids {
    /// Sets who is told; once.
    pub(super) fn observe(&self, observer: Observer) {
        // A second observer would be a defect of the informer: the first stays.
        let _ = self.observer.set(observer);
    }

    /// `object`, which is in the store, does not decode into the type `of`.
    pub(super) fn add(&self, object: &Arc<Object>, of: TypeId, message: &Arc<str>) -> News {
        let (message, object) = (Arc::clone(message), Arc::clone(object));
        let found = Known { message, of, object, is_outdated: false };
        let mut known = self.known.lock();
        self.is_any.store(true, Ordering::Release);
        match known.entry(found.object.key().clone()) {
            Entry::Vacant(place) => {
                place.insert(found);
                News::First
            }
            Entry::Occupied(mut place) => {
                let before = place.insert(found);
                if before.message == place.get().message { News::Nothing } else { News::Another }
            }
        }
    }

    /// Why this very version does not decode into the type `of`, when that was tried before.
    pub(super) fn of(&self, object: &Object, of: TypeId) -> Option<Arc<str>> {
        if !self.is_any.load(Ordering::Acquire) {
            return None;
        }
        let known = self.known.lock();
        let found = known.get(object.key())?;
        let is_it = found.of == of && std::ptr::eq(&*found.object, object);
        is_it.then(|| Arc::clone(&found.message))
    }

    /// Tells the observer. Not under a lock.
    pub(super) fn tell(&self, object: &Arc<Object>, message: &Arc<str>) {
        if let Some(observer) = self.observer.get() {
            observer(object, message);
        }
    }

    /// These changes are in the store: what changed is judged anew, what is gone is forgotten.
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
        self.is_any.store(!known.is_empty(), Ordering::Release);
    }

    /// `object` decodes into the type `of`; true when an earlier state of it did not. That another
    /// type takes it says nothing.
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

    pub(super) fn len(&self) -> usize {
        if !self.is_any.load(Ordering::Acquire) {
            return 0;
        }
        self.known.lock().values().filter(|known| !known.is_outdated).count()
    }

    /// Those that do not decode as they are now, in key order, with the reason.
    pub(super) fn list(&self) -> Vec<(Arc<Object>, Arc<str>)> {
        let known = self.known.lock();
        let current = known.values().filter(|known| !known.is_outdated);
        current.map(|known| (Arc::clone(&known.object), Arc::clone(&known.message))).collect()
    }
}
