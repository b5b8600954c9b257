//! The store without its type: slots by key, indexes, tombstones, own writes, behind one lock.
//!
//! Only the informer's task changes slots, so that what it tells listeners is what it did. User code
//! (index functions, decoding) never runs under the lock.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use super::apply::{Applied, Mark, Run, Sighting};
use super::index::{Evaluate, IndexId, Table, Terms};
use super::invalid::{Invalids, News, Observer};
use super::object::{Home, KeyParts, Object};
use super::own::Overlay;
use crate::clock::Clock;
use crate::delta::Delta;
use crate::resource::{ClusterId, ObjectKey, ResourceInfo};
use crate::wire::Skim;

/// The cache of one kind.
pub(crate) struct Core {
    home: Arc<Home>,
    clock: Clock,
    pub(super) state: RwLock<State>,
    /// Objects known not to decode, with the reason. Locked after `state`.
    invalid: Invalids,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) slots: BTreeMap<ObjectKey, Slot>,
    pub(super) tables: Vec<Table>,
    pub(super) tombstones: Tombstones,
    pub(super) own: Overlay,
    pub(super) bytes: usize,
}

/// An object in the store.
pub(super) struct Slot {
    pub(super) object: Arc<Object>,
    /// The last run that saw it.
    pub(super) run: Run,
    /// Its values, one entry per table.
    pub(super) terms: Vec<Terms>,
}

impl Core {
    pub(crate) fn new(info: ResourceInfo, clock: Clock) -> Arc<Self> {
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            home: Arc::new(Home::new(info, Weak::clone(me))),
            clock,
            state: RwLock::default(),
            invalid: Invalids::default(),
        })
    }

    pub(crate) fn info(&self) -> &ResourceInfo {
        &self.home.info
    }

    /// An object of this store's kind, not put into it.
    pub(crate) fn object(&self, skim: &Skim<'_>) -> Arc<Object> {
        let key = ObjectKey::new(skim.namespace.as_deref(), &skim.name);
        Object::new(key, skim, &self.home)
    }

    /// The cached object, when it is the very version that `skim` shows.
    pub(crate) fn same_version(&self, skim: &Skim<'_>) -> Option<Arc<Object>> {
        let key = (ClusterId::default(), skim.namespace.as_deref(), &*skim.name);
        let state = self.state.read();
        let object = &state.slots.get(&key as &dyn KeyParts)?.object;
        let is_same = object.version() == skim.resource_version && object.head().uid() == skim.uid;
        (is_same && !skim.resource_version.is_empty()).then(|| Arc::clone(object))
    }

    pub(crate) fn len(&self) -> usize {
        let now = self.clock.now();
        let state = self.state.read();
        let mut len = state.slots.len();
        for key in state.own.keys() {
            let seen = state.slots.get(key).map(|slot| &slot.object);
            len -= usize::from(seen.is_some());
            len += usize::from(state.own.resolve(key, seen, now).is_some());
        }
        len
    }

    /// Number of objects that the watch has shown.
    pub(crate) fn seen_len(&self) -> usize {
        self.state.read().slots.len()
    }

    /// The objects that the watch has shown, in key order.
    pub(crate) fn content(&self) -> Vec<Arc<Object>> {
        self.state.read().slots.values().map(|slot| Arc::clone(&slot.object)).collect()
    }

    /// Bytes of all bodies.
    pub(crate) fn bytes(&self) -> usize {
        self.state.read().bytes
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        let state = self.state.read();
        let seen = state.slots.get(key).map(|slot| &slot.object);
        state.own.resolve(key, seen, self.clock.now()).map(Arc::clone)
    }

    /// The object that the watch has shown, whatever this process wrote.
    pub(crate) fn get_seen(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.state.read().slots.get(key).map(|slot| Arc::clone(&slot.object))
    }

    /// The objects of a namespace (`None`: all) that `keep` keeps, in key order, from one moment.
    pub(crate) fn collect(
        &self,
        namespace: Option<&str>,
        keep: &dyn Fn(&Object) -> bool,
    ) -> Vec<Arc<Object>> {
        let now = self.clock.now();
        let state = self.state.read();
        let mut found: Vec<_> = state
            .slots_of(namespace)
            .filter_map(|(key, slot)| state.own.resolve(key, Some(&slot.object), now))
            .filter(|object| keep(object))
            .map(Arc::clone)
            .collect();
        let unseen = state.own.keys().filter(|key| !state.slots.contains_key(*key));
        let unseen = unseen.filter(|key| namespace.is_none() || key.namespace() == namespace);
        let seen = found.len();
        found.extend(
            unseen
                .filter_map(|key| state.own.resolve(key, None, now))
                .filter(|object| keep(object))
                .map(Arc::clone),
        );
        if found.len() > seen {
            found.sort_by(|a, b| a.key().cmp(b.key()));
        }
        found
    }

    /// The objects with `term` in an index that the store has.
    pub(crate) fn lookup(&self, id: IndexId, term: &str) -> Option<Vec<Arc<Object>>> {
        let now = self.clock.now();
        let state = self.state.read();
        let table = state.tables.iter().find(|table| table.id == id)?;
        if state.own.is_empty() {
            let slots = table.keys(term).filter_map(|key| state.slots.get(key));
            return Some(slots.map(|slot| Arc::clone(&slot.object)).collect());
        }
        let mut found = BTreeMap::new();
        let mut unindexed = Vec::new();
        for key in table.keys(term) {
            let seen = state.slots.get(key).map(|slot| &slot.object);
            if let Some(object) = state.own.resolve(key, seen, now) {
                found.insert(key.clone(), Arc::clone(object));
            }
        }
        for key in state.own.keys() {
            let seen = state.slots.get(key).map(|slot| &slot.object);
            let shown = state.own.resolve(key, seen, now);
            if let Some(own) = shown.filter(|shown| !seen.is_some_and(|s| Arc::ptr_eq(s, shown))) {
                found.remove(key);
                unindexed.push(Arc::clone(own));
            }
        }
        let evaluator = Arc::clone(&table.evaluator);
        drop(state);
        for own in unindexed {
            if evaluator.terms(&own, &mut None).iter().any(|own| **own == *term) {
                found.insert(own.key().clone(), own);
            }
        }
        Some(found.into_values().collect())
    }

    /// Builds an index, unless the store has it.
    pub(crate) fn ensure_index(&self, id: IndexId, evaluator: &Arc<dyn Evaluate>) {
        let mut known: BTreeMap<ObjectKey, (Arc<Object>, Terms)> = BTreeMap::new();
        // Values are computed outside the lock; each round has only the objects to do that changed
        // during the round before.
        loop {
            let missing = {
                let state = self.state.upgradable_read();
                if state.tables.iter().any(|table| table.id == id) {
                    return;
                }
                let missing = state.missing(&known);
                if missing.is_empty() {
                    let mut state = parking_lot::RwLockUpgradableReadGuard::upgrade(state);
                    state.install(Table::new(id, Arc::clone(evaluator)), &mut known);
                    return;
                }
                missing
            };
            for object in missing {
                let terms = evaluator.terms(&object, &mut None);
                known.insert(object.key().clone(), (object, terms));
            }
        }
    }

    /// Applies a batch under one lock and says what changed.
    pub(crate) fn apply(&self, batch: Vec<Delta<Sighting, Mark>>) -> Applied {
        loop {
            let (evaluators, terms) = self.evaluate(&batch);
            let mut state = self.state.write();
            // An index was added meanwhile: its values are not there yet.
            if state.tables.len() == evaluators {
                let applied = state.apply(batch, terms);
                self.invalid.changed(&applied.events);
                return applied;
            }
        }
    }

    /// Index values of the objects that are new to the store, computed outside the lock.
    fn evaluate(&self, batch: &[Delta<Sighting, Mark>]) -> (usize, BTreeMap<usize, Vec<Terms>>) {
        let (evaluators, fresh) = {
            let state = self.state.read();
            let evaluators: Vec<_> =
                state.tables.iter().map(|table| Arc::clone(&table.evaluator)).collect();
            if evaluators.is_empty() {
                return (0, BTreeMap::new());
            }
            let is_fresh = |object: &Arc<Object>| {
                !state.slots.get(object.key()).is_some_and(|slot| Arc::ptr_eq(&slot.object, object))
            };
            let fresh: Vec<_> = batch
                .iter()
                .enumerate()
                .filter_map(|(at, delta)| match delta {
                    Delta::Put(seen) if is_fresh(&seen.object) => Some((at, &seen.object)),
                    _ => None,
                })
                .collect();
            (evaluators, fresh)
        };
        let terms = fresh
            .into_iter()
            .map(|(at, object)| {
                let mut decoded = None;
                (at, evaluators.iter().map(|e| e.terms(object, &mut decoded)).collect())
            })
            .collect();
        (evaluators.len(), terms)
    }

    /// This process wrote `object`; ignored when the watch was faster.
    pub(crate) fn wrote(&self, object: Arc<Object>) {
        let mut state = self.state.write();
        let seen = state.slots.get(object.key()).map(|slot| &slot.object);
        let is_seen = seen.is_some_and(|seen| {
            !super::version::order(object.version(), seen.version())
                .is_none_or(std::cmp::Ordering::is_gt)
        });
        if !is_seen && !state.tombstones.covers(&object) {
            let now = self.clock.now();
            state.own.wrote(object, now);
        }
    }

    /// This process deleted the object of that uid.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.state.write();
        let seen = state.slots.get(key).map(|slot| &slot.object);
        if seen.is_some_and(|seen| seen.head().uid() == uid)
            || state.own.keys().any(|own| own == key)
        {
            let now = self.clock.now();
            state.own.deleted(key.clone(), uid, now);
        }
    }

    /// Has the watch failed to show an own write in time?
    pub(crate) fn is_stale(&self, key: &ObjectKey) -> bool {
        self.state.read().own.is_stale(key, self.clock.now())
    }

    /// Number of cached objects that are known not to decode.
    pub(crate) fn invalid(&self) -> usize {
        self.invalid.len()
    }

    /// The cached objects that are known not to decode, in key order, and why.
    pub(crate) fn invalid_list(&self) -> Vec<(Arc<Object>, Arc<str>)> {
        self.invalid.list()
    }

    /// Calls `observer` when an object is found not to decode. Once.
    pub(crate) fn observe_invalid(&self, observer: Observer) {
        self.invalid.observe(observer);
    }

    /// Somebody tried to decode `object` and could not.
    pub(crate) fn note_invalid(&self, object: &Arc<Object>, message: &Arc<str>) {
        let state = self.state.read();
        let slot = state.slots.get(object.key());
        if !slot.is_some_and(|slot| Arc::ptr_eq(&slot.object, object)) {
            return;
        }
        let news = self.invalid.add(object, message);
        drop(state);
        if news == News::First {
            tracing::warn!(
                resource = %self.home.info, object = %object.key(), version = object.version(),
                error = &**message,
                "the object does not decode into its type; it is skipped until it changes"
            );
        }
        if news != News::Nothing {
            self.invalid.tell(object, message);
        }
    }

    /// Somebody decoded `object`.
    pub(crate) fn note_valid(&self, object: &Object) {
        if self.invalid.heal(object) {
            tracing::info!(
                resource = %self.home.info, object = %object.key(), version = object.version(),
                "the object decodes again"
            );
        }
    }
}

impl State {
    /// The slots of a namespace, or all.
    pub(super) fn slots_of<'a>(
        &'a self,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Slot)> {
        let first = (ClusterId::default(), namespace, "");
        let from = match namespace {
            Some(_) => Bound::Included(&first as &dyn KeyParts),
            None => Bound::Unbounded,
        };
        self.slots
            .range::<dyn KeyParts, _>((from, Bound::Unbounded))
            .take_while(move |(key, _)| namespace.is_none() || key.namespace() == namespace)
    }

    fn missing(&self, known: &BTreeMap<ObjectKey, (Arc<Object>, Terms)>) -> Vec<Arc<Object>> {
        let is_known = |object: &Arc<Object>| {
            known.get(object.key()).is_some_and(|(known, _)| Arc::ptr_eq(known, object))
        };
        let objects = self.slots.values().map(|slot| &slot.object);
        objects.filter(|object| !is_known(object)).map(Arc::clone).collect()
    }

    fn install(&mut self, mut table: Table, known: &mut BTreeMap<ObjectKey, (Arc<Object>, Terms)>) {
        for (key, slot) in &mut self.slots {
            let terms = known.remove(key).map(|(_, terms)| terms).unwrap_or_default();
            table.link(key, &terms);
            slot.terms.push(terms);
        }
        self.tables.push(table);
    }

    pub(super) fn link(&mut self, key: &ObjectKey, terms: &[Terms]) {
        for (table, terms) in self.tables.iter_mut().zip(terms) {
            table.link(key, terms);
        }
    }

    pub(super) fn unlink(&mut self, key: &ObjectKey, terms: &[Terms]) {
        for (table, terms) in self.tables.iter_mut().zip(terms) {
            table.unlink(key, terms);
        }
    }
}

/// At most so many deletions are remembered.
const MOST_TOMBSTONES: usize = 4096;

/// Versions of recent deletions, so that an older frame does not bring an object back.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    order: VecDeque<ObjectKey>,
    deleted: BTreeMap<ObjectKey, (Arc<str>, Run)>,
}

impl Tombstones {
    pub(super) fn add(&mut self, key: &ObjectKey, version: &str, run: Run) {
        if self.deleted.insert(key.clone(), (Arc::from(version), run)).is_none() {
            self.order.push_back(key.clone());
        }
        while self.order.len() > MOST_TOMBSTONES {
            if let Some(oldest) = self.order.pop_front() {
                self.deleted.remove(&oldest);
            }
        }
    }

    /// The deletion's version and run.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&(Arc<str>, Run)> {
        self.deleted.get(key)
    }

    /// Is this object older than the deletion of its key?
    pub(super) fn covers(&self, object: &Object) -> bool {
        self.deleted.get(object.key()).is_some_and(|(version, _)| {
            super::version::order(object.version(), version).is_some_and(std::cmp::Ordering::is_le)
        })
    }

    pub(super) fn forget(&mut self, within: &dyn Fn(&ObjectKey) -> bool) {
        self.deleted.retain(|key, _| !within(key));
        let deleted = &self.deleted;
        self.order.retain(|key| deleted.contains_key(key));
    }
}
