//! Application of deltas to the store: version by version, no deletion lost, relists as
//! differences.

use std::cmp::Ordering;
use std::sync::Arc;

use super::state::StoreState;
use crate::delta::Delta;
use crate::store::index::{ValueRange, Values};
use crate::store::observed::{BatchOutcome, MarkKind, Observed, StoreEvent, StreamMark};
use crate::store::slots::{Id, ObjectSlot, parts};
use crate::store::version::order;
use windlass_core::resource::ObjectKey;

impl StoreState {
    /// Applies deltas without sweeping marks; `parts` has the index values of each.
    pub(in crate::store) fn apply(
        &mut self,
        batch: impl Iterator<Item = Delta<Observed, StreamMark>>,
        values: &Values,
        parts: &[ValueRange],
        applied: &mut BatchOutcome,
    ) {
        for (at, delta) in batch.enumerate() {
            match delta {
                Delta::Put(seen) => {
                    let part = parts.get(at).cloned().unwrap_or_default();
                    self.put(seen, values, &part, applied);
                }
                Delta::Delete(last) => self.delete(last, applied),
                Delta::StreamMark(mark) => {
                    self.settle(&mark);
                    applied.marks.push(mark);
                }
            }
        }
    }

    /// Applies a state, if it is newer than the cached one.
    fn put(
        &mut self,
        seen: Observed,
        values: &Values,
        part: &ValueRange,
        applied: &mut BatchOutcome,
    ) {
        let key = parts(seen.object.key());
        let hash = self.slots.hash(key);
        let Some(id) = self.slots.find_hashed(hash, key) else {
            if self.is_before_deletion(&seen) {
                return applied.drop_stale(seen);
            }
            self.own.seen(&seen.object);
            let slot = ObjectSlot { object: Arc::clone(&seen.object), run: seen.run };
            self.occupy(hash, slot, values, part);
            let Observed { object: new, is_initial, .. } = seen;
            return applied.events.push(StoreEvent::Added { new, is_initial });
        };
        let Some(slot) = self.slots.at_mut(id) else { return };
        // A list delivered the cached object unchanged: only the run is noted.
        if Arc::ptr_eq(&slot.object, &seen.object) {
            slot.run = slot.run.max(seen.run);
            return;
        }
        // Versions of two epochs do not compare: `order` is `None` then, and the new state wins.
        let order = (slot.run.epoch == seen.run.epoch)
            .then(|| order(seen.object.version(), slot.object.version()))
            .flatten();
        if matches!(order, Some(Ordering::Less | Ordering::Equal)) {
            slot.run = slot.run.max(seen.run);
            return applied.drop_stale(seen);
        }
        // A store that was set back has most objects unchanged: those cause no event.
        if order.is_none() && slot.object.is_same(&seen.object) {
            slot.run = slot.run.max(seen.run);
            self.own.seen(&seen.object);
            applied.stale.push(seen);
            return;
        }
        // Only for a newer state: an older frame does not confirm a deletion that came later.
        self.own.seen(&seen.object);
        let slot = ObjectSlot { object: Arc::clone(&seen.object), run: seen.run };
        let Some(old) = self.exchange(id, slot, values, part) else { return };
        if old.object.metadata().has_uid_of(&seen.object.metadata()) {
            applied.events.push(StoreEvent::Updated { old: old.object, new: seen.object });
        } else {
            // Another uid: the object was deleted and created again while the deletion was not
            // shown (B10: deleted and created again under the same name).
            applied
                .events
                .push(StoreEvent::Deleted { last: old.object, final_state_unknown: true });
            applied
                .events
                .push(StoreEvent::Added { new: seen.object, is_initial: seen.is_initial });
        }
    }

    /// Whether the object is older than the deletion of the key (B6: older or repeated frames).
    fn is_before_deletion(&self, seen: &Observed) -> bool {
        let deleted = self.tombstones.run(seen.object.key());
        deleted.is_some_and(|run| run.epoch == seen.run.epoch)
            && self.tombstones.covers(&seen.object)
    }

    /// Applies a deletion, unless the cached state is newer.
    fn delete(&mut self, last: Observed, applied: &mut BatchOutcome) {
        let (key, version) = (last.object.key(), last.object.version());
        let uid = last.object.metadata().uid();
        let id = self.slots.find(parts(key));
        let slot = id.and_then(|id| self.slots.at(id));
        if let Some(slot) = slot
            && slot.run.epoch == last.run.epoch
        {
            // Without comparable versions only a deletion of the cached uid counts.
            let is_stale = match order(version, slot.object.version()) {
                Some(order) => order == Ordering::Less,
                None => slot.object.metadata().uid() != uid && !uid.is_empty(),
            };
            if is_stale {
                return applied.drop_stale(last);
            }
        }
        let final_state_unknown = slot.is_some_and(|slot| slot.object.metadata().uid() != uid);
        self.own.observe_deleted(key, uid, version);
        self.tombstones.add(key, version, last.run);
        // Reports the state that listeners know, even if the deletion carries a later state.
        if let Some(id) = id {
            self.remove(id, final_state_unknown, applied);
        }
        applied.stale.push(last);
    }

    /// Removes an object and reports the deletion.
    fn remove(&mut self, id: Id, final_state_unknown: bool, applied: &mut BatchOutcome) {
        if let Some(slot) = self.vacate(id) {
            applied.events.push(StoreEvent::Deleted { last: slot.object, final_state_unknown });
        }
    }

    /// Returns the keys that a mark declares gone, in key order.
    pub(in crate::store) fn swept(&self, mark: &StreamMark) -> Vec<ObjectKey> {
        if !mark.sweeps() {
            return Vec::new();
        }
        let mut gone = self.ids_of(mark.namespace.as_deref());
        gone.retain(|id| self.slots.at(*id).is_some_and(|slot| mark.takes(slot.run)));
        gone.sort_unstable_by(|a, b| self.compare(*a, *b));
        let keys = gone.into_iter().filter_map(|id| self.slots.object(id));
        keys.map(|object| object.key().clone()).collect()
    }

    /// Removes the keys that `swept` found, unless they were seen since.
    pub(in crate::store) fn sweep(
        &mut self,
        mark: &StreamMark,
        gone: &[ObjectKey],
        applied: &mut BatchOutcome,
    ) {
        for key in gone {
            let id = self.slots.find(parts(key));
            if let Some(id) = id
                && self.slots.at(id).is_some_and(|slot| mark.takes(slot.run))
            {
                self.remove(id, true, applied);
            }
        }
    }

    /// Applies a mark to own writes and tombstones; the mark's sweep is done already.
    fn settle(&mut self, mark: &StreamMark) {
        let namespace = mark.namespace.as_deref();
        let within = |key: &ObjectKey| namespace.is_none() || key.namespace() == namespace;
        let is_newer = order(&mark.resource_version, &self.version).is_none_or(Ordering::is_gt);
        if is_newer || mark.what == MarkKind::NewEpoch {
            self.version = Arc::clone(&mark.resource_version);
        }
        match mark.what {
            MarkKind::Reached | MarkKind::ListedInPart => return,
            MarkKind::NewEpoch => {
                self.begin_epoch(mark);
                return self.own.forget(&within);
            }
            MarkKind::Listed | MarkKind::Absent => {}
        }
        // A complete list is newer than every deletion before it.
        self.tombstones.forget(&within);
        if mark.what == MarkKind::Absent {
            self.own.forget(&within);
        } else if !self.own.is_empty() {
            let slots = &self.slots;
            let absent = |key: &ObjectKey| within(key) && slots.find(parts(key)).is_none();
            self.own.listed(&mark.resource_version, &absent);
        }
    }
}
