//! What the store's lock protects.

use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use super::apply::{Mark, Run, Sighting};
use super::groups::Groups;
use super::hash::{Hash, Hasher};
use super::moment::Moment;
use super::object::Object;
use super::own::Overlay;
use super::slots::{Id, Slot, Slots, parts};
use super::table::Table;
use super::tombstones::Tombstones;
use super::values::{Part, Plan, Values};
use super::version::order;
use crate::delta::Delta;
use crate::resource::ObjectKey;

/// Objects, indexes, and what is remembered of deletions and own writes.
pub(super) struct State {
    pub(super) slots: Slots,
    pub(super) namespaces: Groups,
    pub(super) tables: Vec<Table>,
    /// How the tables' values are computed. Another one whenever there is another table.
    pub(super) plan: Arc<Plan>,
    pub(super) tombstones: Tombstones,
    pub(super) own: Overlay,
    /// Bytes of all contents.
    pub(super) payload: usize,
    /// Bytes that the objects take up.
    pub(super) resident: usize,
    /// Counts the keys that came and went: while it stays, so does the order of keys.
    pub(super) membership: u64,
    /// The newest version up to which everything was applied; empty before the first list.
    pub(super) version: Arc<str>,
    /// The epochs of scopes whose server's store was set back.
    epochs: Vec<(Option<Arc<str>>, u32)>,
    /// Snapshots that somebody holds.
    moments: Vec<Weak<Moment>>,
    hasher: Hasher,
}

/// What the watch has shown at the key of an own write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Nothing, or an earlier state.
    Earlier,
    /// The written state, or a deletion since.
    Same,
    /// A later state.
    Later,
    /// A state from before the server's store was set back: whatever its version, it is over.
    Void,
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        let hasher = Hasher::new(seed);
        Self {
            slots: Slots::new(hasher),
            namespaces: Groups::new(hasher),
            tables: Vec::new(),
            plan: Arc::default(),
            tombstones: Tombstones::default(),
            own: Overlay::default(),
            payload: 0,
            resident: 0,
            membership: 0,
            version: Arc::default(),
            epochs: Vec::new(),
            moments: Vec::new(),
            hasher,
        }
    }

    /// What the watch has shown of the key of `object`, which this process wrote.
    pub(super) fn shown_beside(&self, object: &Object) -> Shown {
        let epoch = self.epoch_of(object.key().namespace());
        let is_of_now = |run: Run| run.epoch >= epoch;
        if self.tombstones.run(object.key()).is_some_and(is_of_now)
            && self.tombstones.covers(object)
        {
            return Shown::Same;
        }
        let Some(slot) = self.slots.get(parts(object.key())) else { return Shown::Earlier };
        if !is_of_now(slot.run) {
            return Shown::Void;
        }
        match order(object.version(), slot.object.version()) {
            Some(Ordering::Less) => Shown::Later,
            Some(Ordering::Equal) => Shown::Same,
            _ => Shown::Earlier,
        }
    }

    /// The epoch of a namespace. What was shown in an earlier one does not compare with what comes.
    fn epoch_of(&self, namespace: Option<&str>) -> u32 {
        let is_in = |scope: &Option<Arc<str>>| scope.is_none() || scope.as_deref() == namespace;
        let epochs = self.epochs.iter().filter(|(scope, _)| is_in(scope));
        epochs.map(|(_, epoch)| *epoch).max().unwrap_or_default()
    }

    /// A scope's new epoch has begun.
    pub(super) fn begin_epoch(&mut self, mark: &Mark) {
        let epoch = mark.run.epoch;
        match self.epochs.iter_mut().find(|(scope, _)| *scope == mark.namespace) {
            Some((_, known)) => *known = epoch,
            None => self.epochs.push((mark.namespace.clone(), epoch)),
        }
    }

    /// Puts an object at a key that has none.
    pub(super) fn occupy(&mut self, hash: Hash, slot: Slot, values: &Values, part: &Part) {
        let object = Arc::clone(&slot.object);
        self.remember(object.key(), None);
        self.count(&object, true);
        self.membership += 1;
        let id = self.slots.insert(hash, slot);
        if let Some(namespace) = object.key().namespace() {
            self.namespaces.join(namespace, id, &self.slots);
        }
        self.index(id, values, part);
    }

    /// Puts another object in the place of one of the same key; returns that.
    pub(super) fn exchange(
        &mut self,
        id: Id,
        slot: Slot,
        values: &Values,
        part: &Part,
    ) -> Option<Slot> {
        self.count(&slot.object, true);
        let old = std::mem::replace(self.slots.at_mut(id)?, slot);
        self.remember(old.object.key(), Some(&old.object));
        self.count(&old.object, false);
        self.index(id, values, part);
        Some(old)
    }

    /// Says what the values of the object at `id` are.
    pub(super) fn index(&mut self, id: Id, values: &Values, part: &Part) {
        for (index, table) in self.tables.iter_mut().enumerate() {
            table.set(id, values.of(part, index), &self.slots);
        }
    }

    /// Takes an object out.
    pub(super) fn vacate(&mut self, id: Id) -> Option<Slot> {
        let object = Arc::clone(self.slots.object(id)?);
        self.remember(object.key(), Some(&object));
        for table in &mut self.tables {
            table.clear(id, &self.slots);
        }
        if let Some(namespace) = object.key().namespace() {
            self.namespaces.leave_text(namespace, id, &self.slots);
        }
        self.count(&object, false);
        self.membership += 1;
        self.slots.remove(id)
    }

    /// Which of the deltas bring an object that is not in the store already? Empty where no index
    /// asks.
    pub(super) fn fresh(&self, deltas: &[Delta<Sighting, Mark>]) -> Vec<bool> {
        if self.plan.is_empty() {
            return Vec::new();
        }
        let holds = |object: &Arc<Object>| {
            // What nobody else holds the store does not hold: so it is with all that a watch brings.
            if Arc::strong_count(object) == 1 {
                return false;
            }
            let slot = self.slots.get(parts(object.key()));
            slot.is_some_and(|slot| Arc::ptr_eq(&slot.object, object))
        };
        let is_fresh = |delta: &Delta<Sighting, Mark>| matches!(delta, Delta::Put(seen) if !holds(&seen.object));
        deltas.iter().map(is_fresh).collect()
    }

    /// Puts the same state of an object in another form into its place.
    #[cfg(feature = "cold")]
    pub(super) fn reshape(&mut self, from: &Arc<Object>, to: &Arc<Object>) {
        let id = self.slots.find(parts(from.key()));
        if let Some(slot) = id.and_then(|id| self.slots.at_mut(id))
            && Arc::ptr_eq(&slot.object, from)
        {
            slot.object = Arc::clone(to);
            self.count(to, true);
            self.count(from, false);
        }
    }

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

    /// Tells open snapshots what stood at a key before it changes.
    fn remember(&mut self, key: &ObjectKey, before: Option<&Arc<Object>>) {
        self.moments.retain(|moment| match moment.upgrade() {
            Some(moment) => {
                moment.remember(key, before);
                true
            }
            None => false,
        });
    }

    /// From now on `moment` is told what stood at a key before it changes.
    pub(super) fn open(&mut self, moment: &Arc<Moment>) {
        self.moments.push(Arc::downgrade(moment));
    }

    /// Adds an index that answers nobody yet; objects that change are kept in it from now on.
    pub(super) fn install(&mut self, table: impl FnOnce(Hasher) -> Table) {
        self.tables.push(table(self.hasher));
        self.own.unindex();
        self.plan = Arc::new(Plan::new(self.tables.iter().map(|table| &table.evaluator)));
    }

    /// The places of a namespace's objects, or of all, in no order that may show.
    pub(super) fn ids_of(&self, namespace: Option<&str>) -> Vec<Id> {
        match namespace {
            None => self.slots.iter().map(|(id, _)| id).collect(),
            Some(namespace) => {
                let group = self.namespaces.find(namespace);
                group.into_iter().flat_map(|group| group.members()).collect()
            }
        }
    }

    /// By the keys of the objects there.
    pub(super) fn compare(&self, a: Id, b: Id) -> Ordering {
        let key = |id| self.slots.object(id).map(|object| object.key());
        key(a).cmp(&key(b))
    }
}
