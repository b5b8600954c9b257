//! Reader of the changes of all resources at once.
//!
//! Each resource has a cursor into the store's history. If changes have fallen off the end of the
//! history, events are made from a comparison of states.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::core::ServerCore;
use crate::kinds::Kind;
use crate::kinds::registry::KindTable;
use crate::storage::{Cursor, Snapshot, StoredObject};

/// A change of an object.
#[derive(Clone, Debug)]
pub(super) struct ChangedObject {
    /// The kind, in the stored version.
    pub(super) kind: Arc<Kind>,
    /// State before; `None` for a new object.
    pub(super) before: Option<Arc<StoredObject>>,
    /// State after; `None` for a deleted object.
    pub(super) after: Option<Arc<StoredObject>>,
    /// Revision of the change, which orders events of different resources.
    revision: u64,
}

/// Position in a resource's history.
#[derive(Debug)]
struct ChangeSource {
    /// The kind, in the stored version.
    kind: Arc<Kind>,
    /// Position in the resource's history.
    cursor: Cursor,
    /// State at the cursor, for the comparison after lost history.
    known: Snapshot,
}

/// Changes that are read at a time.
const BATCH: usize = 1024;

/// Cursors into all resources.
#[derive(Debug, Default)]
pub(super) struct Follower {
    /// The kinds for which there are sources.
    table: Option<Arc<KindTable>>,
    sources: BTreeMap<String, ChangeSource>,
}

impl Follower {
    /// Returns all changes since the last call, in their order.
    ///
    /// Objects that existed before a resource was first seen are reported as new.
    pub(super) fn poll(&mut self, core: &ServerCore) -> Vec<ChangedObject> {
        let mut events = Vec::new();
        let table = core.registry.table();
        // Looked through only when kinds have changed: this runs at every write of any resource.
        let is_known = self.table.as_ref().is_some_and(|known| Arc::ptr_eq(known, &table));
        let kinds = if is_known { Vec::new() } else { table.stored() };
        self.table = Some(table);
        for kind in kinds {
            if let Some(source) = self.sources.get_mut(&kind.storage) {
                // A definition may have changed the kind in the meantime.
                source.kind = kind;
                continue;
            }
            let (now, cursor) = core.store.follow(&kind.storage);
            let storage = kind.storage.clone();
            let mut source = ChangeSource { kind, cursor, known: Snapshot::new_sync() };
            // Compared with an empty state: all present objects are reported as new.
            source.compare(now, &mut events);
            self.sources.insert(storage, source);
        }
        let count = self.sources.len();
        self.sources.retain(|storage, source| source.read(core, storage, &mut events));
        // A resource that has ended may be served again under the same kinds, as after a restored
        // backup.
        if self.sources.len() < count {
            self.table = None;
        }
        // Resources are read in sequence; the revision restores their common order.
        events.sort_by_key(|event| event.revision);
        events
    }
}

impl ChangeSource {
    /// Reads new changes; returns whether the resource is still served.
    fn read(&mut self, core: &ServerCore, storage: &str, events: &mut Vec<ChangedObject>) -> bool {
        loop {
            let Ok(batch) = core.store.changes(storage, &mut self.cursor, BATCH) else {
                // The history was lost: states are compared instead.
                let (now, cursor) = core.store.follow(storage);
                self.cursor = cursor;
                self.compare(now, events);
                return true;
            };
            // A full batch may have more changes behind it.
            let full = batch.changes.len() == BATCH;
            for change in batch.changes {
                match &change.after {
                    Some(object) => self.known.insert_mut(change.key, object.clone()),
                    None => drop(self.known.remove_mut(&change.key)),
                }
                events.push(ChangedObject {
                    kind: self.kind.clone(),
                    before: change.before,
                    after: change.after,
                    revision: change.revision,
                });
            }
            if batch.ended || !full {
                return !batch.ended;
            }
        }
    }

    /// Makes events from the difference to a newer state.
    fn compare(&mut self, now: Snapshot, events: &mut Vec<ChangedObject>) {
        let mut push = |before: Option<&Arc<StoredObject>>, after: Option<&Arc<StoredObject>>| {
            let newest = after.or(before).map_or(0, |object| object.revision);
            events.push(ChangedObject {
                kind: self.kind.clone(),
                before: before.cloned(),
                after: after.cloned(),
                revision: newest,
            });
        };
        for (key, object) in &self.known {
            if now.get(key).is_none() {
                push(Some(object), None);
            }
        }
        for (key, object) in &now {
            let before = self.known.get(key);
            if before.is_none_or(|before| before.revision != object.revision) {
                push(before, Some(object));
            }
        }
        self.known = now;
    }
}
