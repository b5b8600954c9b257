//! Reads: each call, or each snapshot, answers from a single moment.
//!
//! Under the lock only reference counts change: sorting, matching and the evaluation of objects
//! that an index does not cover come after the lock.

use std::sync::Arc;

use super::core::{KeyOrder, StoreCore};
use crate::store::index::{Evaluator, IndexId, IndexPlan, Values};
use crate::store::object::Object;
use crate::store::slots::{Id, parts};
use crate::store::state::{Differences, SnapshotDiff, StoreState};
use windlass_core::resource::ObjectKey;

/// The time that a read refers to: now, or the moment of a snapshot.
#[derive(Clone, Copy)]
pub(crate) enum ReadTime<'a> {
    /// The state at the call, own writes included.
    Now,
    /// The present state, with the differences that the snapshot has recorded since.
    SnapshotDiff(&'a SnapshotDiff),
}

/// A group that is smaller than the store by this factor is sorted separately.
const SMALL_GROUP: usize = 8;

impl StoreCore {
    /// Takes a snapshot of the current state.
    pub(crate) fn snapshot_diff(&self) -> Arc<SnapshotDiff> {
        // Under the write lock: a change between reading own writes and `open` would be missed.
        let mut state = self.state.write();
        let diff = SnapshotDiff::new(self.own_differences(&state));
        state.open(&diff);
        diff
    }

    /// Returns the keys at which own writes hide the state that the watch has shown.
    fn own_differences(&self, state: &StoreState) -> Differences {
        let mut differences = Differences::new();
        if state.own.is_empty() {
            return differences;
        }
        let now = self.clock.now();
        for key in state.own.keys() {
            let seen = state.slots.get(parts(key)).map(|slot| &slot.object);
            let shown = state.own.resolve(key, seen, now);
            if shown.map(Arc::as_ptr) != seen.map(Arc::as_ptr) {
                differences.insert(key.clone(), shown.map(Arc::clone));
            }
        }
        differences
    }

    /// Calls `read` with the state and the differences of the moment from this state.
    fn read<R>(&self, at: ReadTime<'_>, read: impl FnOnce(&StoreState, &Differences) -> R) -> R {
        // A single read lock for state and differences: a change in between would show a moment
        // that never was.
        let state = self.state.read();
        match at {
            ReadTime::Now => read(&state, &self.own_differences(&state)),
            ReadTime::SnapshotDiff(diff) => diff.with(|differences| read(&state, differences)),
        }
    }

    /// Number of objects.
    pub(crate) fn len(&self, at: ReadTime<'_>) -> usize {
        self.read(at, |state, differences| {
            let mut len = state.slots.len();
            for (key, shown) in differences {
                len -= usize::from(state.slots.find(parts(key)).is_some());
                len += usize::from(shown.is_some());
            }
            len
        })
    }

    /// Returns the object at `key`, own writes included.
    pub(crate) fn get(&self, key: &ObjectKey, at: ReadTime<'_>) -> Option<Arc<Object>> {
        // The usual read: without building the differences of all own writes.
        if let ReadTime::Now = at {
            let state = self.state.read();
            return self.shown(&state, key).map(Arc::clone);
        }
        self.read(at, |state, differences| match differences.get(key) {
            Some(shown) => shown.clone(),
            None => state.slots.get(parts(key)).map(|slot| Arc::clone(&slot.object)),
        })
    }

    /// Returns the object at `key` now, own writes included.
    fn shown<'a>(&self, state: &'a StoreState, key: &ObjectKey) -> Option<&'a Arc<Object>> {
        let seen = state.slots.get(parts(key)).map(|slot| &slot.object);
        if state.own.is_empty() {
            return seen;
        }
        state.own.resolve(key, seen, self.clock.now())
    }

    /// Returns the object that the watch has shown, without own writes.
    pub(crate) fn get_seen(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.state.read().slots.get(parts(key)).map(|slot| Arc::clone(&slot.object))
    }

    /// Returns the objects of a namespace (`None`: all), in key order.
    pub(crate) fn collect(&self, namespace: Option<&str>, at: ReadTime<'_>) -> Vec<Arc<Object>> {
        let (mut found, shown) = self.read(at, |state, differences| {
            let within = |key: &ObjectKey| namespace.is_none() || key.namespace() == namespace;
            let mut found = self.found(state, namespace);
            if differences.is_empty() {
                return (found, Vec::new());
            }
            found.objects.retain(|(_, object)| !differences.contains_key(object.key()));
            // Objects that an own deletion hides are missing: this order must not be remembered.
            found.is_seen = false;
            let shown = differences.iter().filter(|(key, _)| within(key));
            (found, shown.filter_map(|(_, shown)| shown.clone()).collect())
        });
        let is_whole = namespace.is_none() && found.is_seen;
        self.sort(&mut found, is_whole && shown.is_empty());
        let mut objects: Vec<_> = found.objects.into_iter().map(|(_, object)| object).collect();
        if !shown.is_empty() {
            objects.extend(shown);
            objects.sort_by(|a, b| a.key().cmp(b.key()));
        }
        objects
    }

    /// Returns the objects that the watch has shown, in key order.
    pub(crate) fn content(&self) -> Vec<Arc<Object>> {
        let mut found = self.found(&self.state.read(), None);
        self.sort(&mut found, true);
        found.objects.into_iter().map(|(_, object)| object).collect()
    }

    /// Returns the objects of a namespace that the watch has shown, sorted if that costs nothing.
    fn found(&self, state: &StoreState, namespace: Option<&str>) -> CollectedObjects {
        // Locked only to copy the `Arc`: `sort` on another thread replaces the order.
        let order = self.order.lock();
        let (membership, ids) = (order.membership, Arc::clone(&order.ids));
        drop(order);
        let is_sorted = membership == state.membership;
        let objects = |ids: &mut dyn Iterator<Item = Id>| {
            ids.filter_map(|id| Some((id, Arc::clone(state.slots.object(id)?)))).collect()
        };
        let mut found = CollectedObjects {
            objects: Vec::new(),
            is_sorted,
            is_seen: true,
            membership: state.membership,
        };
        let Some(namespace) = namespace else {
            found.objects = if is_sorted {
                objects(&mut ids.iter().copied())
            } else {
                // Nearly sorted most of the time, which makes the sort cheap.
                objects(&mut all_ids(state, &ids).into_iter())
            };
            return found;
        };
        let Some(group) = state.namespaces.find(namespace) else { return found };
        // A large group without an own order lies side by side in the order of all keys.
        if is_sorted && !group.is_sorted() && group.len() > state.slots.len() / SMALL_GROUP {
            let of = |id: &Id| state.slots.object(*id).and_then(|object| object.key().namespace());
            let first = ids.partition_point(|id| of(id) < Some(namespace));
            let mut within =
                ids[first..].iter().copied().take_while(|id| of(id) == Some(namespace));
            found.objects = objects(&mut within);
        } else {
            found.is_sorted = group.is_sorted();
            found.objects = objects(&mut group.members());
        }
        found
    }

    /// Sorts the objects; `is_all` if they are all of the store, whose order is then remembered.
    fn sort(&self, found: &mut CollectedObjects, is_all: bool) {
        if found.is_sorted {
            return;
        }
        found.objects.sort_by(|(_, a), (_, b)| a.key().cmp(b.key()));
        found.is_sorted = true;
        if is_all {
            let ids = found.objects.iter().map(|(id, _)| *id).collect();
            // With the membership that was read: if a key came or went since, the order is not
            // used.
            *self.order.lock() = KeyOrder { membership: found.membership, ids };
        }
    }

    /// Returns the objects with `term` in an index of the store, in key order; `None` without the
    /// index.
    pub(crate) fn lookup(
        &self,
        id: IndexId,
        term: &str,
        at: ReadTime<'_>,
    ) -> Option<Vec<Arc<Object>>> {
        let IndexMatch { mut found, is_sorted, others, evaluator } = match at {
            ReadTime::Now => self.match_now(id, term)?,
            ReadTime::SnapshotDiff(_) => self.read(at, |state, differences| {
                // The index covers the current slots only: objects of the snapshot that differ are
                // evaluated here.
                let (mut matched, _) = matched(state, id, term)?;
                matched.found.retain(|object| !differences.contains_key(object.key()));
                matched.others = differences.values().flatten().map(Arc::clone).collect();
                Some(matched)
            })?,
        };
        let found_in_index = found.len();
        // After the lock is released: evaluating may run user code.
        if !others.is_empty() {
            let plan = IndexPlan::new([&evaluator]);
            let has_term = |object: &Arc<Object>| {
                let mut values = Values::default();
                let part = plan.evaluate(object, object, &mut values);
                values.of(&part, 0).iter().any(|text| text == term)
            };
            found.extend(others.into_iter().filter(has_term));
        }
        if !is_sorted || found.len() > found_in_index {
            found.sort_by(|a, b| a.key().cmp(b.key()));
        }
        Some(found)
    }

    /// Returns the objects in the index, and the own writes that may have the term instead.
    fn match_now(&self, id: IndexId, term: &str) -> Option<IndexMatch> {
        let state = self.state.read();
        let (mut matched, table) = matched(&state, id, term)?;
        if state.own.is_empty() {
            return Some(matched);
        }
        let now = self.clock.now();
        matched.found.retain(|object| {
            // An own write or deletion may hide the indexed state; the former is evaluated by the
            // caller.
            let shown = state.own.resolve(object.key(), Some(object), now);
            shown.is_some_and(|shown| Arc::ptr_eq(shown, object))
        });
        for key in state.own.with_value(table, term) {
            let seen = state.slots.get(parts(key)).map(|slot| &slot.object);
            if let Some(shown) = state.own.resolve(key, seen, now)
                && seen.is_none_or(|seen| !Arc::ptr_eq(seen, shown))
            {
                matched.others.push(Arc::clone(shown));
            }
        }
        Some(matched)
    }
}

/// Objects that an index has for a term, and others that the index may not cover.
struct IndexMatch {
    /// Objects of the index, as the watch has shown them.
    found: Vec<Arc<Object>>,
    is_sorted: bool,
    /// Objects that are not in the index in the shown state: own writes, or states of a snapshot.
    others: Vec<Arc<Object>>,
    /// Computes the values of `others`.
    evaluator: Evaluator,
}

/// Looks `term` up among the objects that the watch has shown; returns also the index's number.
fn matched(state: &StoreState, id: IndexId, term: &str) -> Option<(IndexMatch, usize)> {
    let mut tables = state.tables.iter().enumerate();
    let (number, table) = tables.find(|(_, table)| table.id == id && table.is_ready)?;
    // A value that no object has is no group: the answer is empty, and not an error.
    let group = table.find(term);
    let is_sorted = group.is_none_or(|group| group.is_sorted());
    let ids = group.into_iter().flat_map(|group| group.members());
    let mut found = Vec::with_capacity(group.map_or(0, |group| group.len()));
    found.extend(ids.filter_map(|id| state.slots.object(id)).map(Arc::clone));
    let evaluator = table.evaluator.clone();
    Some((IndexMatch { found, is_sorted, others: Vec::new(), evaluator }, number))
}

/// Objects that were collected under the lock.
struct CollectedObjects {
    objects: Vec<(Id, Arc<Object>)>,
    is_sorted: bool,
    /// They are exactly the slots' objects.
    is_seen: bool,
    /// Number of the key set that was read.
    membership: u64,
}

/// Returns all places, those with a known order first.
fn all_ids(state: &StoreState, known: &[Id]) -> Vec<Id> {
    let mut is_listed = vec![false; state.slots.places()];
    let mut ids = Vec::with_capacity(state.slots.len());
    for id in known {
        if let Some(listed) = is_listed.get_mut(*id as usize)
            && state.slots.at(*id).is_some()
            && !*listed
        {
            *listed = true;
            ids.push(*id);
        }
    }
    ids.extend(state.slots.iter().map(|(id, _)| id).filter(|id| !is_listed[*id as usize]));
    ids
}
