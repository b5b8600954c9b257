//! Snapshots: the current state plus the differences from the time of the snapshot.
//!
//! Taking a snapshot copies nothing. While a snapshot is held, the store passes it the old state of
//! each key before the key changes for the first time, so the cost depends only on the changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::store::object::Object;
use windlass_core::resource::ObjectKey;
use windlass_core::sync::Mutex;

/// Objects that readers see instead of those in the slots; `None` hides the slot's object.
pub(in crate::store) type Differences = BTreeMap<ObjectKey, Option<Arc<Object>>>;

/// The differences of a snapshot from the current slots. Locked after the store's state.
pub(crate) struct SnapshotDiff {
    /// Old states by key. The order of the locks is fixed, since a writer holds the state when
    /// recording an old one here.
    differences: Mutex<Differences>,
}

impl SnapshotDiff {
    /// Builds a snapshot in which own writes are visible as in `differences`.
    pub(in crate::store) fn new(differences: Differences) -> Arc<Self> {
        Arc::new(Self { differences: Mutex::new(differences) })
    }

    /// Records the old state of `key`.
    ///
    /// `before` is `None` for a key that had no object. To be called under the write lock under
    /// which the slot changes, so that no reader sees only the old state or only the change.
    pub(in crate::store) fn remember(&self, key: &ObjectKey, before: Option<&Arc<Object>>) {
        let mut differences = self.differences.lock();
        // Only the first change of a key counts: later changes replace states from after the
        // snapshot.
        if !differences.contains_key(key) {
            differences.insert(key.clone(), before.map(Arc::clone));
        }
    }

    /// Calls `read` with the differences, under the lock. Not for user code.
    ///
    /// A reader holds the read lock of the state meanwhile; a change between slots and differences
    /// would show an object twice or not at all.
    pub(in crate::store) fn with<R>(&self, read: impl FnOnce(&Differences) -> R) -> R {
        read(&self.differences.lock())
    }
}
