//! Pausing: an annotation excludes an object from reconciling.

// DESIGN.md, 40: `windlass.dev/paused: "true"` stops clean-up as well

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::controller::state::SparseLock;
use windlass_cache::store::{Cached, StoreEvent};
use windlass_core::metrics::GaugeSeries;
use windlass_core::resource::{ObjectKey, Resource};

/// Annotation that pauses an object while the value is `"true"`: nothing is reconciled and nothing
/// cleaned up, so an object that is being deleted keeps the finalizer and stays. When the
/// annotation is removed, or gets another value, the object is reconciled at once, whatever
/// predicates return.
///
/// `windlass_paused_objects` counts the objects that were skipped because of the annotation; the
/// log reports each object once, at the first skip. A cache that keeps values reads the annotation
/// from those values, so a [`Projection`](crate::Projection) has to keep annotations for pausing to
/// work.
pub const PAUSED: &str = "windlass.dev/paused";

/// Objects of a controller that were skipped because they are paused.
#[derive(Debug, Default)]
pub(crate) struct Paused {
    keys: SparseLock<BTreeSet<ObjectKey>>,
    gauge: OnceLock<GaugeSeries>,
}

impl Paused {
    /// Sets the gauge for the number of paused objects.
    pub(crate) fn set_gauge(&self, gauge: GaugeSeries) {
        gauge.set(0.0);
        let _ = self.gauge.set(gauge);
    }

    /// Whether the object is paused and must be skipped. Keeps the set, and logs a new pause.
    pub(crate) fn check<K: Resource>(&self, object: &Cached<K>) -> bool {
        let is_paused = object.annotation(PAUSED).as_deref() == Some("true");
        if is_paused {
            if self.note(object.key()) {
                tracing::info!("the object is paused while its annotation {PAUSED} is \"true\"");
            }
        } else {
            self.forget(object.key());
        }
        is_paused
    }

    /// Forgets an object that is not paused any more, or deleted.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        let Some(mut keys) = self.keys.lock_if_any() else { return };
        let was_paused = keys.remove(key);
        self.update_gauge(&keys);
        drop(keys);
        if was_paused {
            tracing::info!("the object is no longer paused");
        }
    }

    /// Forgets all objects, at the end of a term.
    pub(crate) fn clear(&self) {
        let Some(mut keys) = self.keys.lock_if_any() else { return };
        keys.clear();
        self.update_gauge(&keys);
    }

    /// Notes a paused object; returns whether that is new.
    fn note(&self, key: &ObjectKey) -> bool {
        let mut keys = self.keys.lock();
        let is_new = keys.insert(key.clone());
        self.update_gauge(&keys);
        is_new
    }

    /// Updates the gauge. Called under the lock, so that the last change is shown last.
    fn update_gauge(&self, keys: &BTreeSet<ObjectKey>) {
        if let Some(gauge) = self.gauge.get() {
            gauge.set(keys.len() as f64);
        }
    }
}

/// Whether the change pauses the object or ends the pause.
pub(crate) fn is_pause_change(event: &StoreEvent) -> bool {
    let StoreEvent::Updated { old, new } = event else { return false };
    old.annotation(PAUSED) != new.annotation(PAUSED)
}
