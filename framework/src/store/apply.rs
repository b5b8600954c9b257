//! How deltas change the store: version by version, deletions never lost, relists as differences.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::core::{Slot, State};
use super::index::Terms;
use super::object::Object;
use super::version::order;
use crate::delta::{Delta, Keyed};
use crate::resource::ObjectKey;

/// One pass over a scope: a list and the watch that follows it. Runs count up; a new epoch begins
/// when the server's versions went backwards, and versions of two epochs do not compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) epoch: u32,
    pub(crate) number: u32,
}

/// An object as a reflector saw it.
#[derive(Clone)]
pub(crate) struct Sighting {
    pub(crate) object: Arc<Object>,
    pub(crate) run: Run,
    /// Seen by the first list.
    pub(crate) is_initial: bool,
}

impl Keyed for Sighting {
    fn key(&self) -> &ObjectKey {
        self.object.key()
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match self.run.epoch.cmp(&other.run.epoch) {
            Ordering::Equal => order(self.object.version(), other.object.version()),
            epoch => Some(epoch),
        }
    }

    fn seen_again(&mut self, again: &Self) {
        self.run = self.run.max(again.run);
    }
}

/// Something about a scope's stream.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// Which reflector says so.
    pub(crate) scope: usize,
    /// Its namespace; `None` for all.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) run: Run,
    pub(crate) resource_version: Arc<str>,
    pub(crate) what: Milestone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Milestone {
    /// Everything up to this version has been told.
    Reached,
    /// The list is complete: what it did not show is gone.
    Listed,
    /// The list is complete but for items whose name could not be read: what it did not show stays.
    ListedInPart,
    /// The kind is not served: everything is gone.
    Absent,
    /// The server's versions went backwards: what was written before cannot be waited for.
    NewEpoch,
}

/// What happened to an object.
#[derive(Clone)]
pub(crate) enum Event {
    Added { new: Arc<Object>, is_initial: bool },
    Updated { old: Arc<Object>, new: Arc<Object> },
    Deleted { last: Arc<Object>, final_state_unknown: bool },
}

impl Event {
    pub(crate) fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new.key(),
            Self::Deleted { last, .. } => last.key(),
        }
    }
}

/// What a batch did.
#[derive(Default)]
pub(crate) struct Applied {
    /// Changes in order.
    pub(crate) events: Vec<Event>,
    /// Marks in order; all events of the batch that stood before a mark are in `events`.
    pub(crate) marks: Vec<Mark>,
    /// States that were not newer than the cached ones.
    pub(crate) dropped: u64,
}

impl State {
    pub(super) fn apply(
        &mut self,
        batch: Vec<Delta<Sighting, Mark>>,
        mut terms: BTreeMap<usize, Vec<Terms>>,
    ) -> Applied {
        let mut applied = Applied::default();
        for (at, delta) in batch.into_iter().enumerate() {
            match delta {
                Delta::Put(seen) => {
                    self.put(seen, terms.remove(&at).unwrap_or_default(), &mut applied);
                }
                Delta::Delete(last) => self.delete(&last, &mut applied),
                Delta::Mark(mark) => {
                    self.mark(&mark, &mut applied);
                    applied.marks.push(mark);
                }
            }
        }
        applied
    }

    fn put(&mut self, seen: Sighting, mut terms: Vec<Terms>, applied: &mut Applied) {
        let key = seen.object.key();
        self.own.seen(&seen.object);
        let Some(slot) = self.slots.get_mut(key) else {
            return self.add(seen, terms, applied);
        };
        if Arc::ptr_eq(&slot.object, &seen.object) {
            slot.run = slot.run.max(seen.run);
            return;
        }
        let order = (slot.run.epoch == seen.run.epoch)
            .then(|| order(seen.object.version(), slot.object.version()))
            .flatten();
        if matches!(order, Some(Ordering::Less | Ordering::Equal)) {
            slot.run = slot.run.max(seen.run);
            applied.dropped += 1;
            return;
        }
        terms.resize_with(self.tables.len(), Terms::default);
        let new = Slot { object: Arc::clone(&seen.object), run: seen.run, terms };
        let old = std::mem::replace(slot, new);
        self.bytes = self.bytes + seen.object.content().len() - old.object.content().len();
        self.relink(seen.object.key(), &old.terms);
        if old.object.head().uid() == seen.object.head().uid() {
            applied.events.push(Event::Updated { old: old.object, new: seen.object });
        } else {
            applied.events.push(Event::Deleted { last: old.object, final_state_unknown: true });
            applied.events.push(Event::Added { new: seen.object, is_initial: seen.is_initial });
        }
    }

    fn add(&mut self, seen: Sighting, mut terms: Vec<Terms>, applied: &mut Applied) {
        let key = seen.object.key();
        if self.tombstones.get(key).is_some_and(|(_, run)| run.epoch == seen.run.epoch)
            && self.tombstones.covers(&seen.object)
        {
            applied.dropped += 1;
            return;
        }
        terms.resize_with(self.tables.len(), Terms::default);
        self.link(key, &terms);
        self.bytes += seen.object.content().len();
        let slot = Slot { object: Arc::clone(&seen.object), run: seen.run, terms };
        self.slots.insert(key.clone(), slot);
        applied.events.push(Event::Added { new: seen.object, is_initial: seen.is_initial });
    }

    fn delete(&mut self, last: &Sighting, applied: &mut Applied) {
        let (key, version) = (last.object.key(), last.object.version());
        let uid = last.object.head().uid();
        if let Some(slot) = self.slots.get(key)
            && slot.run.epoch == last.run.epoch
        {
            let is_stale = match order(version, slot.object.version()) {
                Some(order) => order == Ordering::Less,
                None => slot.object.head().uid() != uid && !uid.is_empty(),
            };
            if is_stale {
                applied.dropped += 1;
                return;
            }
        }
        self.own.seen_gone(key, uid, version);
        self.tombstones.add(key, version, last.run);
        let Some(slot) = self.slots.get(key) else { return };
        let final_state_unknown = slot.object.head().uid() != uid;
        // The state that listeners know is the one to take back, even if the deletion shows a later.
        self.remove(&key.clone(), final_state_unknown, applied);
    }

    fn remove(&mut self, key: &ObjectKey, final_state_unknown: bool, applied: &mut Applied) {
        if let Some(slot) = self.slots.remove(key) {
            self.unlink(key, &slot.terms);
            self.bytes -= slot.object.content().len();
            applied.events.push(Event::Deleted { last: slot.object, final_state_unknown });
        }
    }

    fn relink(&mut self, key: &ObjectKey, old: &[Terms]) {
        let Some(new) = self.slots.get(key).map(|slot| &slot.terms) else { return };
        for ((table, old), new) in self.tables.iter_mut().zip(old).zip(new) {
            if old != new {
                table.unlink(key, old);
                table.link(key, new);
            }
        }
    }

    fn mark(&mut self, mark: &Mark, applied: &mut Applied) {
        let namespace = mark.namespace.as_deref();
        let within = |key: &ObjectKey| namespace.is_none() || key.namespace() == namespace;
        match mark.what {
            Milestone::Reached | Milestone::ListedInPart => return,
            Milestone::NewEpoch => return self.own.forget(&within),
            Milestone::Listed | Milestone::Absent => {}
        }
        let gone: Vec<ObjectKey> = self
            .slots_of(namespace)
            .filter(|(_, slot)| slot.run < mark.run || mark.what == Milestone::Absent)
            .map(|(key, _)| key.clone())
            .collect();
        for key in &gone {
            self.remove(key, true, applied);
        }
        self.tombstones.forget(&within);
        if mark.what == Milestone::Absent {
            self.own.forget(&within);
        } else if !self.own.is_empty() {
            let slots = &self.slots;
            let absent = |key: &ObjectKey| within(key) && !slots.contains_key(key);
            self.own.listed(&mark.resource_version, &absent);
        }
    }
}
