//! Everything that a controller remembers of objects between reconciles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::apply_cache::ApplyCache;
use super::fights::Fights;
use super::own_write_filter::OwnWriteFilter;
use super::superseded::Superseded;
use windlass_core::resource::ObjectKey;

/// Per-object state that a controller keeps between reconciles; losing it costs requests, not
/// correctness.
#[derive(Debug, Default)]
pub(crate) struct ObjectMemory {
    pub(crate) applied: Arc<ApplyCache>,
    pub(crate) own_writes: Arc<OwnWriteFilter>,
    pub(crate) superseded: Arc<Superseded>,
    pub(crate) fights: Fights,
    /// Versions that did not decode, and were reported.
    undecodable: Mutex<BTreeMap<ObjectKey, String>>,
    /// Conditions of which a refused reason was logged.
    refused: Mutex<BTreeSet<String>>,
}

/// Most conditions of which a refused reason is logged; a controller declares far fewer.
const MOST_REFUSED: usize = 64;

impl ObjectMemory {
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.applied.forget(key);
        self.own_writes.forget(key);
        self.superseded.ended(key);
        self.fights.forget(key);
        self.undecodable.lock().remove(key);
    }

    /// Whether this version of an object is found not to decode for the first time.
    pub(crate) fn first_report(&self, key: &ObjectKey, version: &str) -> bool {
        let mut reported = self.undecodable.lock();
        reported.insert(key.clone(), version.to_owned()).is_none_or(|last| last != version)
    }

    /// Whether a reason of that condition is refused for the first time, of any object.
    pub(crate) fn first_refusal(&self, type_: &str) -> bool {
        let mut refused = self.refused.lock();
        // Bounded: a condition set that is implemented by hand may make up types.
        refused.len() < MOST_REFUSED && refused.insert(type_.to_owned())
    }
}
