//! The state that the store's lock protects.
//!
//! Invariants: each slot's object is in the group of the object's namespace and in all tables that
//! are ready; `payload` and `resident` are the sums over the slots; `membership` changes with every
//! key that comes or goes. Every change of a slot first passes the old state to the open snapshots.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use super::own_writes::Overlay;
use super::snapshot_diff::SnapshotDiff;
use super::tombstones::Tombstones;
use crate::delta::Delta;
use crate::store::index::{IndexPlan, IndexTable, Postings, ValueRange, Values};
use crate::store::object::Object;
use crate::store::observed::{ListGeneration, Observed, StreamMark};
use crate::store::slots::{Hash, Hasher, Id, ObjectSlot, Slots, parts};
use crate::store::version::order;
use windlass_core::resource::ObjectKey;

/// Objects, indexes, deletions that are remembered, and own writes.
pub(in crate::store) struct StoreState {
    /// The objects that the watch has shown, by key.
    pub(in crate::store) slots: Slots,
    /// The objects of each namespace.
    pub(in crate::store) namespaces: Postings,
    /// One for each index, in the order of their declaration.
    pub(in crate::store) tables: Vec<IndexTable>,
    /// Computes the tables' values. Replaced whenever a table is added.
    pub(in crate::store) plan: Arc<IndexPlan>,
    /// Deletions that an older state must not undo.
    pub(in crate::store) tombstones: Tombstones,
    /// Own writes that the watch has not shown.
    pub(in crate::store) own: Overlay,
    /// Bytes of all contents.
    pub(in crate::store) payload: usize,
    /// Bytes that the objects take up.
    pub(in crate::store) resident: usize,
    /// Counts keys that came and went: the order of keys is valid while this count is unchanged.
    pub(in crate::store) membership: u64,
    /// The newest version up to which everything was applied; empty before the first list.
    pub(in crate::store) version: Arc<str>,
    /// The epochs of scopes whose server's store was set back.
    epochs: Vec<(Option<Arc<str>>, u32)>,
    /// Snapshots that callers hold.
    diffs: Vec<Weak<SnapshotDiff>>,
    /// Hashes keys, by the seed of the store.
    hasher: Hasher,
}

/// Comparison of the watch's state at a key with an own write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum OwnWriteOrder {
    /// Nothing, or an earlier state.
    Earlier,
    /// The written state, or a deletion since.
    Same,
    /// A later state.
    Later,
    /// A state from before the server's store was set back, which does not count regardless of the
    /// version.
    Void,
}

impl StoreState {
    /// Creates an empty state.
    pub(in crate::store) fn new(seed: u64) -> Self {
        let hasher = Hasher::new(seed);
        Self {
            slots: Slots::new(hasher),
            namespaces: Postings::new(hasher),
            tables: Vec::new(),
            plan: Arc::default(),
            tombstones: Tombstones::default(),
            own: Overlay::default(),
            payload: 0,
            resident: 0,
            membership: 0,
            version: Arc::default(),
            epochs: Vec::new(),
            diffs: Vec::new(),
            hasher,
        }
    }

    /// Compares `object`, which this process wrote, with the state that the watch has shown.
    pub(in crate::store) fn compare_own(&self, object: &Object) -> OwnWriteOrder {
        let epoch = self.epoch_of(object.key().namespace());
        let is_of_now = |run: ListGeneration| run.epoch >= epoch;
        // A deletion of this epoch that came after the write hides the write: the object must not
        // appear again.
        if self.tombstones.run(object.key()).is_some_and(is_of_now)
            && self.tombstones.covers(object)
        {
            return OwnWriteOrder::Same;
        }
        let Some(slot) = self.slots.get(parts(object.key())) else { return OwnWriteOrder::Earlier };
        // Versions from before a restored backup are numerically larger and say nothing.
        if !is_of_now(slot.run) {
            return OwnWriteOrder::Void;
        }
        match order(object.version(), slot.object.version()) {
            Some(Ordering::Less) => OwnWriteOrder::Later,
            Some(Ordering::Equal) => OwnWriteOrder::Same,
            _ => OwnWriteOrder::Earlier,
        }
    }

    /// Returns the epoch of a namespace. States of an earlier epoch do not compare with later
    /// states.
    fn epoch_of(&self, namespace: Option<&str>) -> u32 {
        let is_in = |scope: &Option<Arc<str>>| scope.is_none() || scope.as_deref() == namespace;
        let epochs = self.epochs.iter().filter(|(scope, _)| is_in(scope));
        epochs.map(|(_, epoch)| *epoch).max().unwrap_or_default()
    }

    /// Begins a scope's new epoch.
    pub(in crate::store) fn begin_epoch(&mut self, mark: &StreamMark) {
        let epoch = mark.run.epoch;
        match self.epochs.iter_mut().find(|(scope, _)| *scope == mark.namespace) {
            Some((_, known)) => *known = epoch,
            None => self.epochs.push((mark.namespace.clone(), epoch)),
        }
    }

    /// Inserts an object at a key that has none.
    pub(in crate::store) fn occupy(
        &mut self,
        hash: Hash,
        slot: ObjectSlot,
        values: &Values,
        part: &ValueRange,
    ) {
        let object = Arc::clone(&slot.object);
        // Before the change: open snapshots record that the key was absent.
        self.remember(object.key(), None);
        self.count(&object, true);
        // Makes the remembered order of keys void.
        self.membership += 1;
        let id = self.slots.insert(hash, slot);
        if let Some(namespace) = object.key().namespace() {
            self.namespaces.join(namespace, id, &self.slots);
        }
        self.index(id, values, part);
    }

    /// Replaces the object at a key; returns the old object.
    pub(in crate::store) fn exchange(
        &mut self,
        id: Id,
        slot: ObjectSlot,
        values: &Values,
        part: &ValueRange,
    ) -> Option<ObjectSlot> {
        // Added before the old object is subtracted, so that the sums never fall below zero.
        self.count(&slot.object, true);
        let old = std::mem::replace(self.slots.at_mut(id)?, slot);
        self.remember(old.object.key(), Some(&old.object));
        self.count(&old.object, false);
        self.index(id, values, part);
        Some(old)
    }

    /// Sets the index values of the object at `id`.
    pub(in crate::store) fn index(&mut self, id: Id, values: &Values, part: &ValueRange) {
        for (index, table) in self.tables.iter_mut().enumerate() {
            table.set(id, values.of(part, index), &self.slots);
        }
    }

    /// Removes an object.
    pub(in crate::store) fn vacate(&mut self, id: Id) -> Option<ObjectSlot> {
        let object = Arc::clone(self.slots.object(id)?);
        self.remember(object.key(), Some(&object));
        // Before the slot is removed: the tables find their values by the place.
        for table in &mut self.tables {
            table.clear(id, &self.slots);
        }
        if let Some(namespace) = object.key().namespace() {
            self.namespaces.remove_text(namespace, id, &self.slots);
        }
        self.count(&object, false);
        // Makes the remembered order of keys void.
        self.membership += 1;
        self.slots.remove(id)
    }

    /// Returns for each delta whether the delta brings an object that is not in the store already;
    /// empty if there is no index.
    pub(in crate::store) fn fresh(&self, deltas: &[Delta<Observed, StreamMark>]) -> Vec<bool> {
        if self.plan.is_empty() {
            return Vec::new();
        }
        let holds = |object: &Arc<Object>| {
            // The store has no object without other references; that holds for all objects of a
            // watch.
            if Arc::strong_count(object) == 1 {
                return false;
            }
            let slot = self.slots.get(parts(object.key()));
            slot.is_some_and(|slot| Arc::ptr_eq(&slot.object, object))
        };
        let is_fresh = |delta: &Delta<Observed, StreamMark>| matches!(delta, Delta::Put(seen) if !holds(&seen.object));
        deltas.iter().map(is_fresh).collect()
    }

    /// Replaces an object by the same state in another form.
    #[cfg(feature = "cold")]
    pub(in crate::store) fn reshape(&mut self, from: &Arc<Object>, to: &Arc<Object>) {
        let id = self.slots.find(parts(from.key()));
        if let Some(slot) = id.and_then(|id| self.slots.at_mut(id))
            && Arc::ptr_eq(&slot.object, from)
        {
            slot.object = Arc::clone(to);
            self.count(to, true);
            self.count(from, false);
        }
    }

    /// Adds an object to the byte counts, or subtracts the object.
    fn count(&mut self, object: &Object, is_new: bool) {
        let (payload, resident) = (object.content().len(), object.resident());
        if is_new {
            self.payload += payload;
            self.resident += resident;
        } else {
            self.payload -= payload;
            self.resident -= resident;
        }
    }

    /// Passes the old state of a key to open snapshots, before the key changes.
    fn remember(&mut self, key: &ObjectKey, before: Option<&Arc<Object>>) {
        // Snapshots that were dropped leave the list here, so no other clean-up is needed.
        self.diffs.retain(|diff| match diff.upgrade() {
            Some(diff) => {
                diff.remember(key, before);
                true
            }
            None => false,
        });
    }

    /// Adds a snapshot, which from now on receives the old state of each key that changes.
    pub(in crate::store) fn open(&mut self, diff: &Arc<SnapshotDiff>) {
        self.diffs.push(Arc::downgrade(diff));
    }

    /// Adds an index that is not ready for lookups; from now on changed objects are indexed in the
    /// new table.
    pub(in crate::store) fn install(&mut self, table: impl FnOnce(Hasher) -> IndexTable) {
        self.tables.push(table(self.hasher));
        // The own writes' values were computed without this index.
        self.own.unindex();
        self.plan = Arc::new(IndexPlan::new(self.tables.iter().map(|table| &table.evaluator)));
    }

    /// Returns the places of a namespace's objects, or of all, in an order that callers must not
    /// expose.
    pub(in crate::store) fn ids_of(&self, namespace: Option<&str>) -> Vec<Id> {
        match namespace {
            None => self.slots.iter().map(|(id, _)| id).collect(),
            Some(namespace) => {
                let group = self.namespaces.find(namespace);
                group.into_iter().flat_map(|group| group.members()).collect()
            }
        }
    }

    /// Compares the keys of two objects.
    pub(in crate::store) fn compare(&self, a: Id, b: Id) -> Ordering {
        let key = |id| self.slots.object(id).map(|object| object.key());
        key(a).cmp(&key(b))
    }
}
