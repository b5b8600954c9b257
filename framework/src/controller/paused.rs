//! Objects that an annotation takes out of a controller's hands.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::rare::Rare;
use crate::metrics::GaugeSeries;
use crate::resource::{ObjectKey, Resource};
use crate::store::{Cached, Event};

/// The annotation that pauses an object, when its value is `"true"`: nothing is reconciled and nothing
/// cleaned up, so an object that is being deleted keeps its finalizer and stays. When the annotation
/// goes, or gets another value, the object is reconciled at once, whatever predicates say.
///
/// `windlass_paused_objects` counts the objects that were left alone for it; the log tells each once,
/// when it is first left alone. A cache that keeps values reads it off those, so a
/// [`Projection`](crate::Projection) has to keep annotations to be paused.
pub const PAUSED: &str = "windlass.dev/paused";

/// Those objects of one controller whose turn came while they were paused.
#[derive(Debug, Default)]
pub(super) struct Paused {
    keys: Rare<BTreeSet<ObjectKey>>,
    gauge: OnceLock<GaugeSeries>,
}

impl Paused {
    /// Where the number is told.
    pub(super) fn tell(&self, gauge: GaugeSeries) {
        gauge.set(0.0);
        let _ = self.gauge.set(gauge);
    }

    /// Is the object to be left alone?
    pub(super) fn holds<K: Resource>(&self, object: &Cached<K>) -> bool {
        let is_paused = object.annotation(PAUSED).as_deref() == Some("true");
        if is_paused {
            if self.note(object.key()) {
                tracing::info!("paused: left alone while its annotation {PAUSED} is \"true\"");
            }
        } else {
            self.forget(object.key());
        }
        is_paused
    }

    /// The object is not paused any more, or gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        let Some(mut keys) = self.keys.lock_if_any() else { return };
        let was_paused = keys.remove(key);
        self.show(&keys);
        drop(keys);
        if was_paused {
            tracing::info!("not paused any more");
        }
    }

    /// The object is paused; is that new?
    fn note(&self, key: &ObjectKey) -> bool {
        let mut keys = self.keys.lock();
        let is_new = keys.insert(key.clone());
        self.show(&keys);
        is_new
    }

    /// Under the lock, so that the last change is told last.
    fn show(&self, keys: &BTreeSet<ObjectKey>) {
        if let Some(gauge) = self.gauge.get() {
            gauge.set(keys.len() as f64);
        }
    }
}

/// Did somebody pause the object, or end that?
pub(super) fn is_switched(event: &Event) -> bool {
    let Event::Updated { old, new } = event else { return false };
    old.annotation(PAUSED) != new.annotation(PAUSED)
}
