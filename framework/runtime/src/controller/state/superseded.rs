//! Notification of a running reconcile that the object has a newer spec.
//!
//! A reconcile is superseded when the object's spec changed since it began (by
//! `metadata.generation`; in kinds without a generation, by anything but metadata and status), when
//! the object was marked for deletion, or when the object is gone or replaced by another of the
//! same name. Writes of others to the status or labels are no reason to drop unfinished work.
//!
//! Only reconciles that ask for the notification are registered, so that others cost nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::FixedState;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::spec_version::SpecVersion;
use windlass_cache::store::{Object, StoreEvent};
use windlass_core::resource::ObjectKey;

/// Most reconciles of an object in a row that are dropped; the next reconcile runs to the end,
/// because an object that keeps changing would never be reconciled otherwise.
const MAX_DROPS: u32 = 5;

/// A registered reconcile: the spec at its beginning, and the token to cancel.
#[derive(Debug)]
struct RegisteredReconcile {
    spec_version: SpecVersion,
    token: CancellationToken,
}

/// The reconciles that wait for a notification.
#[derive(Debug)]
pub(crate) struct Superseded {
    registered: Mutex<HashMap<ObjectKey, RegisteredReconcile, FixedState>>,
    /// Length of `registered`, so that changes cost no lock while the map is empty.
    count: AtomicUsize,
    /// Number of dropped reconciles in a row, by object.
    dropped: Mutex<HashMap<ObjectKey, u32, FixedState>>,
}

impl Default for Superseded {
    fn default() -> Self {
        // Never iterated, so the map's order shows nowhere.
        let empty = || HashMap::with_hasher(FixedState::with_seed(0));
        Self {
            registered: Mutex::new(empty()),
            count: AtomicUsize::new(0),
            dropped: Mutex::new(HashMap::with_hasher(FixedState::with_seed(0))),
        }
    }
}

impl Superseded {
    /// Registers a reconcile of `key` that began with this spec, until the returned `Watch` is
    /// dropped.
    pub(crate) fn watch(self: &Arc<Self>, key: &ObjectKey, spec_version: SpecVersion) -> Watch {
        let token = CancellationToken::new();
        let mut registered = self.registered.lock();
        // Stored before the reconcile reads the cache, while `observe` loads the count after the
        // cache has changed: with `SeqCst` at least one side sees the other's write.
        registered.insert(key.clone(), RegisteredReconcile { spec_version, token: token.clone() });
        self.count.store(registered.len(), Ordering::SeqCst);
        Watch { all: Arc::clone(self), key: key.clone(), token }
    }

    /// Handles changes of the cache.
    pub(crate) fn observe(&self, events: &[StoreEvent]) {
        // The store holds the new state already: a reconcile that registers after this load finds
        // that state itself (`Context::until_superseded`).
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for event in events {
            match event {
                StoreEvent::Added { new, .. } | StoreEvent::Updated { new, .. } => {
                    self.changed(new)
                }
                StoreEvent::Deleted { last, .. } => self.deleted(last.key()),
            }
        }
    }

    /// Cancels the registered reconcile of a changed object if the spec changed.
    fn changed(&self, new: &Object) {
        let registered = self.registered.lock();
        let Some(one) = registered.get(new.key()) else { return };
        let (spec_version, token) = (one.spec_version, one.token.clone());
        // Released before hashing, which may read the whole object.
        drop(registered);
        if SpecVersion::of_object(new) != spec_version {
            token.cancel();
        }
    }

    /// Cancels the registered reconcile of an object that is gone.
    fn deleted(&self, key: &ObjectKey) {
        let token = self.registered.lock().get(key).map(|registered| registered.token.clone());
        if let Some(token) = token {
            token.cancel();
        }
    }

    /// Whether a reconcile of `key` may be dropped when superseded.
    pub(crate) fn may_drop(&self, key: &ObjectKey) -> bool {
        self.dropped.lock().get(key).is_none_or(|dropped| *dropped < MAX_DROPS)
    }

    /// Counts a dropped reconcile of `key`.
    pub(crate) fn dropped(&self, key: &ObjectKey) {
        *self.dropped.lock().entry(key.clone()).or_default() += 1;
    }

    /// Resets the count: a reconcile of `key` ran to completion, or the object is gone.
    pub(crate) fn ended(&self, key: &ObjectKey) {
        let mut dropped = self.dropped.lock();
        if !dropped.is_empty() {
            dropped.remove(key);
        }
    }
}

/// A registered reconcile; unregisters on drop.
#[derive(Debug)]
pub(crate) struct Watch {
    all: Arc<Superseded>,
    key: ObjectKey,
    token: CancellationToken,
}

impl Watch {
    /// Cancelled when the reconcile is superseded.
    pub(crate) fn token(&self) -> &CancellationToken {
        &self.token
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut registered = self.all.registered.lock();
        registered.remove(&self.key);
        // Under the lock, so that the count of a later registration is not overwritten by an
        // earlier registration.
        self.all.count.store(registered.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_reconcile_that_asked() {
        let all = Arc::new(Superseded::default());
        let key = ObjectKey::new(None, "home");
        let watch = all.watch(&key, SpecVersion::test(1));
        let token = watch.token().clone();
        all.deleted(&key);
        assert!(token.is_cancelled());
        drop(watch);
        assert_eq!((all.count.load(Ordering::SeqCst), all.registered.lock().len()), (0, 0));
    }

    #[test]
    fn an_object_that_keeps_changing_is_reconciled_to_the_end_now_and_then() {
        let (all, key) = (Superseded::default(), ObjectKey::new(None, "home"));
        let dropped = (0..100).take_while(|_| {
            let may = all.may_drop(&key);
            all.dropped(&key);
            may
        });
        assert_eq!(dropped.count(), MAX_DROPS as usize);
        all.ended(&key);
        assert!(all.may_drop(&key));
    }
}
