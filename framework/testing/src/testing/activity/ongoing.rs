//! The reconciles under way, from which a write has its reasons.

// DESIGN.md, 266: The reconcile behind a write is the one under way when the server stores it

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use windlass_runtime::controller::{ObservedReconcile, ReconcileEnd, ReconcileObserver};

/// Most reconciles that a text names.
const SHOWN: usize = 3;

/// The reconciles under way. Clones share them.
#[derive(Clone, Debug, Default)]
pub(in crate::testing) struct OngoingReconciles(Arc<Mutex<Vec<ObservedReconcile>>>);

impl ReconcileObserver for OngoingReconciles {
    fn began(&self, reconcile: &ObservedReconcile) {
        self.0.lock().push(reconcile.clone());
    }

    fn ended(&self, reconcile: &ObservedReconcile, _: ReconcileEnd) {
        let mut all = self.0.lock();
        let is_same = |it: &ObservedReconcile| {
            it.key == reconcile.key && it.controller == reconcile.controller
        };
        // The oldest: another process may have begun the same one before this one was dropped.
        if let Some(place) = all.iter().position(is_same) {
            all.remove(place);
        }
    }
}

impl OngoingReconciles {
    /// Returns the reconciles that may have made a write, with their reasons: that of the object,
    /// or of an owner of it, else all.
    pub(in crate::testing) fn behind(&self, plural: &str, name: &str, object: &Value) -> String {
        let all = self.0.lock();
        let owners = object["metadata"]["ownerReferences"].as_array();
        let is_near = |it: &&ObservedReconcile| {
            let is_owner = |owner: &Value| {
                owner["kind"] == it.info.kind.as_ref() && owner["name"] == it.key.name()
            };
            let is_own = plural == it.info.plural && name == it.key.name();
            is_own || owners.into_iter().flatten().any(is_owner)
        };
        let mut behind: Vec<&ObservedReconcile> = all.iter().filter(is_near).collect();
        if behind.is_empty() {
            behind = all.iter().collect();
        }
        let text = |it: &&ObservedReconcile| {
            format!("{} {}, because of: {}", it.info.kind, it.key, it.reasons)
        };
        behind.iter().take(SHOWN).map(text).collect::<Vec<_>>().join("; ")
    }
}
