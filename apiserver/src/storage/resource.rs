//! State and history of a resource.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{HISTORY, Snapshot, StoredObject};
use crate::signal::Signal;

/// A write in the form that watches read.
#[derive(Clone, Debug)]
pub(crate) struct StoredChange {
    /// Revision of the write.
    pub(crate) revision: u64,
    /// Key of the object.
    pub(crate) key: Arc<str>,
    /// State before the write; `None` for a creation.
    pub(crate) before: Option<Arc<StoredObject>>,
    /// State after the write; `None` for a deletion.
    pub(crate) after: Option<Arc<StoredObject>>,
    /// All objects of the resource after the write.
    pub(super) snapshot: Snapshot,
}

impl StoredChange {
    /// Returns the bytes that the log keeps for the change. The state before an update is that of
    /// an earlier change; the last state of a deleted object is kept by the log alone.
    pub(super) fn size(&self) -> usize {
        let object = self.after.as_ref().or(self.before.as_ref());
        self.key.len() + object.map_or(0, |object| object.size)
    }
}

/// State and history of a resource.
#[derive(Debug)]
pub(super) struct Resource {
    /// State after the last change.
    pub(super) current: Snapshot,
    /// State at `floor`.
    pub(super) base: Snapshot,
    /// Changes after `floor`, oldest first.
    pub(super) log: VecDeque<StoredChange>,
    /// Bytes of the objects in the log.
    pub(super) bytes: usize,
    /// Revision from which the history is complete; earlier changes are dropped.
    pub(super) floor: u64,
    /// Revision of the last write to this resource.
    pub(super) revision: u64,
    /// Whether the resource is served; otherwise its watches end.
    pub(super) served: bool,
    /// Counts how often the resource was served anew; a cursor of an earlier count ends.
    pub(super) incarnation: u64,
    /// Notified of each change of this resource.
    pub(super) wake: Arc<Signal>,
}

impl Resource {
    /// Returns an empty resource whose history begins at `floor`.
    pub(super) fn new(floor: u64, incarnation: u64) -> Self {
        Self {
            current: Snapshot::new_sync(),
            base: Snapshot::new_sync(),
            log: VecDeque::new(),
            bytes: 0,
            floor,
            revision: floor,
            served: true,
            incarnation,
            wake: Arc::default(),
        }
    }

    /// Appends a change, makes its snapshot current and wakes the watches.
    pub(super) fn record(&mut self, change: StoredChange) {
        self.revision = change.revision;
        self.current = change.snapshot.clone();
        self.bytes += change.size();
        self.log.push_back(change);
        // Bounded: a reader that falls behind is answered as compacted, and lists again.
        while self.log.len() > HISTORY {
            self.forget_oldest();
        }
        self.wake.notify();
    }

    /// Drops the oldest change; `base` moves on to the state after it.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(oldest) = self.log.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.size());
            self.floor = oldest.revision;
            self.base = oldest.snapshot;
        }
    }

    /// Drops the changes up to a revision.
    pub(super) fn compact(&mut self, upto: u64) {
        while self.log.front().is_some_and(|change| change.revision <= upto) {
            self.forget_oldest();
        }
        // Also without a change to drop: a read from before `upto` must be answered as compacted.
        self.floor = self.floor.max(upto);
    }
}
