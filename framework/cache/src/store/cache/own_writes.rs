//! Own writes: laid over the state that the watch has shown.
//!
//! An own write is visible until the watch shows the write or a later state, or the write's time is
//! over. An own write never changes a slot: events for listeners come from the watch alone, so a
//! write that the server loses again leaves no trace in the events.

use std::sync::Arc;

use super::core::StoreCore;
use crate::store::index::Values;
use crate::store::object::Object;
use crate::store::slots::parts;
use crate::store::state::{OwnWriteOrder, StoreState, Unconfirmed};
use windlass_core::resource::ObjectKey;

impl StoreCore {
    /// Records that this process wrote `object`, whose type may have only some of the fields.
    /// Ignored when the watch was faster.
    ///
    /// Returns true when the watch has shown a later state than the write. Then the watch was
    /// quicker than the answer, or the server's store was set back.
    pub(crate) fn wrote(&self, object: Arc<Object>) -> bool {
        let object = self.encode_own(object);
        self.overlay_write(&object, &object, false)
    }

    /// As [`wrote`](Self::wrote), for an object in the form of the API server's answer.
    pub(crate) fn wrote_response(&self, object: Arc<Object>) -> bool {
        let kept = self.encode_response(&object);
        self.overlay_write(&object, &kept, false)
    }

    /// Shows the answer to a dry run until the dry run is withdrawn.
    pub(crate) fn wrote_in_dry_run(&self, object: Arc<Object>) {
        let kept = self.encode_response(&object);
        self.overlay_write(&object, &kept, true);
    }

    /// Hides the object of that uid until that is withdrawn.
    pub(crate) fn deleted_in_dry_run(&self, key: &ObjectKey, uid: &str) {
        self.state.write().own.deleted_in_dry_run(key, uid, self.clock.now());
    }

    /// Withdraws a dry run: readers see the stored state again.
    pub(crate) fn withdraw(&self, key: &ObjectKey) {
        self.state.write().own.withdraw(key);
    }

    /// Overlays an own write on the state that the watch has shown; index values are read from
    /// `received`.
    fn overlay_write(
        &self,
        received: &Arc<Object>,
        object: &Arc<Object>,
        is_dry_run: bool,
    ) -> bool {
        let (plan, tables) = {
            let state = self.state.read();
            (Arc::clone(&state.plan), state.tables.len())
        };
        // Evaluated without the lock: index functions are user code.
        let mut values = Values::default();
        let part = plan.evaluate(received, object, &mut values);
        let mut state = self.state.write();
        // Compared under the write lock: the watch may have shown the write since the index values
        // were read.
        let (now, own) = (self.clock.now(), Arc::clone(object));
        if is_dry_run {
            state.own.wrote_in_dry_run(own, (&values, &part, tables), now);
        } else {
            let shown = state.compare_own(object);
            if matches!(shown, OwnWriteOrder::Same | OwnWriteOrder::Later) {
                return shown == OwnWriteOrder::Later;
            }
            state.own.wrote(own, (&values, &part, tables), now, shown == OwnWriteOrder::Void);
        }
        // An index was added meanwhile: the index's values were not computed, so the write counts
        // as unindexed.
        if !Arc::ptr_eq(&state.plan, &plan) {
            state.own.unindex();
        }
        false
    }

    /// Returns the state of an own write to `key` that the watch has not shown.
    pub(crate) fn unseen(&self, key: &ObjectKey) -> Option<Unconfirmed> {
        self.state.read().own.unseen(key, self.clock.now())
    }

    /// Sets how long a watch may be silent. Own writes that the watch has not shown are remembered
    /// for twice as long, which leaves time to connect and to list anew.
    pub(crate) fn silent_for_at_most(&self, silence: std::time::Duration) {
        self.state.write().own.set_retention(silence.saturating_mul(2));
    }

    /// Records that this process deleted the object of that uid.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.state.write();
        // Split, so that the slot can be read while the overlay is changed.
        let StoreState { slots, own, .. } = &mut *state;
        let seen = slots.get(parts(key)).map(|slot| &*slot.object);
        own.deleted(key, uid, seen, self.clock.now());
    }

    /// Whether the watch has not shown an own write in time.
    pub(crate) fn is_stale(&self, key: &ObjectKey) -> bool {
        self.state.read().own.is_stale(key, self.clock.now())
    }
}
