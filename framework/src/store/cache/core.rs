//! The untyped store: its locks, and the changes that callers may make.
//!
//! Only the informer's task changes slots, so that the events which listeners receive are exactly
//! the changes that it made. User code (index functions, decoding) never runs under the lock, and
//! neither bytes nor index values are prepared or freed under it.

use std::any::TypeId;
use std::cmp::Ordering;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::apply::{BatchOutcome, Observed, StreamMark};
use super::convert::Conversion;
use super::detached_values::refusal;
use super::encode::Mode;
use super::index::{Evaluator, IndexId};
use super::invalid::{InvalidChange, Invalids, Observer};
use super::mode::Transform;
use super::object::{Object, StoreShared};
use super::own_writes::Unconfirmed;
use super::reads::Order;
use super::slots::{Id, parts};
use super::state::{Shown, State};
use super::stats::{Sizes, StoreStats};
use super::table::Table;
use super::values::{IndexPlan, Part, Values};
use super::version::order;
use crate::clock::Clock;
use crate::delta::Delta;
use crate::error::Error;
use crate::resource::{ClusterId, ObjectKey, Reads, ResourceInfo};
use crate::sync::ShardedRwLock;
use crate::wire::MetadataScan;

/// Deltas applied under one lock: some 50 µs, so that no reader waits for long.
const BATCH: usize = 128;

/// The cache of one kind.
pub(crate) struct Core {
    /// State that objects reference, too.
    pub(super) home: Arc<StoreShared>,
    pub(super) clock: Clock,
    pub(super) state: ShardedRwLock<State>,
    /// The order of keys at the last list of all objects. Locked after `state`.
    pub(super) order: Mutex<Order>,
    /// Objects known not to decode, with the reason. Locked after `state`.
    invalid: Invalids,
}

/// Breaks a reference cycle: pooled blocks hold their home, and the home holds the pool.
impl Drop for Core {
    fn drop(&mut self) {
        self.home.blocks.close();
    }
}

impl Core {
    /// Builds a store that keeps compact bytes, with a fixed seed.
    #[cfg(test)]
    pub(crate) fn new(info: ResourceInfo, clock: Clock) -> Arc<Self> {
        Self::with_mode(info, clock, Mode::default(), 0)
    }

    /// Builds a store that keeps its objects as `mode` says. `seed` decides the layout in memory
    /// and nothing else.
    pub(crate) fn with_mode(info: ResourceInfo, clock: Clock, mode: Mode, seed: u64) -> Arc<Self> {
        mode.warn(&info);
        Arc::new_cyclic(|me: &Weak<Self>| Self {
            home: Arc::new(StoreShared::new(info, Weak::clone(me), mode)),
            clock,
            state: ShardedRwLock::new(State::new(seed)),
            order: Mutex::default(),
            invalid: Invalids::default(),
        })
    }

    pub(crate) fn info(&self) -> &ResourceInfo {
        &self.home.info
    }

    /// Builds an object of this store's kind, without storing it. An object that is stored takes
    /// over the key of the cached version ([`apply`](Self::apply)): looking those keys up for a
    /// whole batch takes less time than one after the other.
    pub(crate) fn object(&self, skim: &MetadataScan<'_>) -> Arc<Object> {
        let key = ObjectKey::new(skim.namespace.as_deref(), &skim.name).in_cluster(self.cluster());
        let transformed = self.home.transformed(&key, skim);
        transformed.unwrap_or_else(|| Object::new(key, skim, &self.home))
    }

    /// The cluster in the keys of this store.
    pub(crate) fn cluster(&self) -> ClusterId {
        self.home.mode.cluster
    }

    /// Whether a function transforms objects before they are kept; it has to receive whole objects.
    pub(crate) fn is_transformed_whole(&self) -> bool {
        self.home.mode.transform.as_ref().is_some_and(Transform::is_function)
    }

    fn parts_of<'a>(&self, skim: &'a MetadataScan<'_>) -> super::slots::Parts<'a> {
        (self.cluster(), skim.namespace.as_deref(), &skim.name)
    }

    /// Returns the cached object with the name in `skim`, in any version.
    pub(crate) fn seen_as(&self, skim: &MetadataScan<'_>) -> Option<Arc<Object>> {
        let state = self.state.read();
        state.slots.get(self.parts_of(skim)).map(|slot| Arc::clone(&slot.object))
    }

    /// Compares a listed object of this epoch with the cached object of that name. Returns the
    /// cached object when its version is the same, and whether the listed version is older.
    /// Allocates nothing.
    pub(crate) fn listed(
        &self,
        skim: &MetadataScan<'_>,
        epoch: u32,
    ) -> (Option<Arc<Object>>, bool) {
        let state = self.state.read();
        let Some(slot) = state.slots.get(self.parts_of(skim)) else { return (None, false) };
        let head = slot.object.head();
        if head.resource_version() != skim.resource_version {
            let order = order(&skim.resource_version, head.resource_version());
            return (None, slot.run.epoch == epoch && order == Some(Ordering::Less));
        }
        let is_same = head.uid() == skim.uid && !skim.resource_version.is_empty();
        (is_same.then(|| Arc::clone(&slot.object)), false)
    }

    /// Returns the number of objects that the watch has shown.
    pub(crate) fn seen_len(&self) -> usize {
        self.state.read().slots.len()
    }

    /// Sizes that the informer records after every batch; reading them costs nothing.
    pub(crate) fn sizes(&self) -> Sizes {
        let state = self.state.read();
        Sizes {
            objects: state.slots.len(),
            bytes: state.payload,
            index_entries: state.tables.iter().map(Table::entries).sum(),
        }
    }

    /// Returns the newest version up to which everything was applied.
    pub(crate) fn version(&self) -> Arc<str> {
        Arc::clone(&self.state.read().version)
    }

    /// Returns the sizes of the store, in objects and in bytes.
    pub(crate) fn stats(&self) -> StoreStats {
        let state = self.state.read();
        let ready = || state.tables.iter().filter(|table| table.is_ready);
        let tables: usize = state.tables.iter().map(Table::resident).sum();
        let structure = state.slots.resident() + state.namespaces.resident() + tables;
        StoreStats {
            objects: state.slots.len(),
            namespaces: state.namespaces.len(),
            payload_bytes: state.payload,
            resident_bytes: state.resident + structure + self.home.spare(),
            spare_bytes: self.home.spare(),
            indexes: ready().count(),
            index_values: ready().map(Table::values).sum(),
            index_entries: ready().map(Table::entries).sum(),
            tombstones: state.tombstones.len(),
            own_writes: state.own.len(),
        }
    }

    /// Builds an index, unless the store has it. Objects that change meanwhile are indexed by their
    /// change, so one pass over the others is enough.
    ///
    /// # Errors
    /// The index is on an object instead of a value, or on a field that never exists; or objects
    /// are in the store already and the field was not kept of them. Snapshots whose objects are all
    /// gone do not count: the index finds nothing in them.
    pub(crate) fn ensure_index(&self, id: IndexId, evaluator: &Evaluator) -> Result<(), Error> {
        let built = |state: &State| {
            let table = state.tables.iter().find(|table| table.id == id);
            (table.map(|table| table.is_ready), state.slots.len() > 0 || !state.own.is_empty())
        };
        // With the read lock first: a caller that retries after each refusal must not block
        // readers.
        let (is_ready, is_late) = built(&self.state.read());
        if is_ready == Some(true) {
            return Ok(());
        }
        // Before the write lock is taken: this asks the kind's type, which may run user code.
        let refused = |is_late| refusal(&self.home, evaluator, is_late);
        if is_ready.is_none() {
            refused(is_late).map_or(Ok(()), Err)?;
        }
        let too_late = if is_late { None } else { refused(true) };
        {
            let mut state = self.state.write();
            // Looked at again: another caller may have built the index, or the first objects may
            // have come.
            match built(&state) {
                (Some(true), _) => return Ok(()),
                (Some(false), _) => {}
                (None, is_late) => {
                    too_late.filter(|_| is_late).map_or(Ok(()), Err)?;
                    state.install(|hasher| Table::new(id, evaluator.clone(), hasher));
                }
            }
        }
        self.doubt(evaluator);
        let plan = IndexPlan::new([evaluator]);
        let mut from = 0;
        while let Some(objects) = self.objects_from(&mut from) {
            let mut values = Values::default();
            let evaluate = |(id, object): (Id, Arc<Object>)| {
                let part = plan.evaluate(&object, &object, &mut values);
                (id, object, part)
            };
            let objects: Vec<_> = objects.into_iter().map(evaluate).collect();
            let mut state = self.state.write();
            let State { slots, tables, .. } = &mut *state;
            let Some(table) = tables.iter_mut().find(|table| table.id == id) else { break };
            for (id, object, part) in &objects {
                // A change since the read has indexed the object itself: the table is in the plan
                // already.
                if slots.object(*id).is_some_and(|now| Arc::ptr_eq(now, object)) {
                    table.set(*id, values.of(part, 0), slots);
                }
            }
        }
        let mut state = self.state.write();
        if let Some(table) = state.tables.iter_mut().find(|table| table.id == id) {
            table.is_ready = true;
        }
        Ok(())
    }

    /// Warns when a new index is on a field that the kind's type does not have.
    fn doubt(&self, evaluator: &Evaluator) {
        if let Evaluator::Path(path, reads) = evaluator
            && reads(path) == Reads::Nothing
        {
            tracing::warn!(
                resource = %self.home.info, path = path.join("."),
                "the type of the kind has no field where this index looks; unless API servers know more \
                 fields than the type does, the path is misspelt and the index finds nothing: its names \
                 are those of the JSON"
            );
        }
    }

    /// Returns the objects of the next places and advances `from`; `None` when there are no more
    /// places.
    fn objects_from(&self, from: &mut usize) -> Option<Vec<(Id, Arc<Object>)>> {
        let state = self.state.read();
        let ids = *from..state.slots.places().min(*from + BATCH);
        if ids.is_empty() {
            return None;
        }
        *from = ids.end;
        let object = |id| Some((id as Id, Arc::clone(state.slots.object(id as Id)?)));
        Some(ids.filter_map(object).collect())
    }

    /// Applies deltas in order and returns the changes. Readers get the lock between pieces.
    pub(crate) fn apply(&self, batch: Vec<Delta<Observed, StreamMark>>) -> BatchOutcome {
        let mut applied = BatchOutcome::default();
        let sweeps = |delta: &Delta<Observed, StreamMark>| matches!(delta, Delta::StreamMark(mark) if mark.sweeps());
        // The usual batch: small, and without a mark that removes objects. Applied without
        // splitting.
        if (1..=BATCH).contains(&batch.len()) && !batch.iter().any(sweeps) {
            self.apply_some(batch, &mut applied);
            return applied;
        }
        let mut left = batch.into_iter();
        loop {
            let mut deltas = Vec::with_capacity(left.len().min(BATCH));
            while deltas.len() < BATCH
                && let Some(delta) = left.next()
            {
                // A sweep removes objects that the deltas before it have not shown: it ends its
                // piece.
                let is_last = sweeps(&delta);
                deltas.push(delta);
                if is_last {
                    break;
                }
            }
            if deltas.is_empty() {
                return applied;
            }
            self.apply_some(deltas, &mut applied);
        }
    }

    /// Applies deltas of which only the last may be a sweeping mark.
    fn apply_some(&self, mut deltas: Vec<Delta<Observed, StreamMark>>, applied: &mut BatchOutcome) {
        let last = match deltas.last() {
            Some(Delta::StreamMark(mark)) if mark.sweeps() => deltas.pop(),
            _ => None,
        };
        let mut values = Values::default();
        applied.events.reserve(deltas.len());
        self.adopt_keys(&mut deltas);
        loop {
            let (plan, fresh) = {
                let state = self.state.read();
                (Arc::clone(&state.plan), state.fresh(&deltas))
            };
            let kept = self.keep(&mut deltas, &plan);
            let came = if self.home.mode.answers(&plan) { None } else { Some(&kept) };
            let parts = evaluate(&deltas, &fresh, came, &plan, &mut values);
            let mut state = self.state.write();
            // An index was added meanwhile, and its values were not computed: start again with the
            // new plan.
            if !Arc::ptr_eq(&state.plan, &plan) {
                drop(state);
                kept.undo(&mut deltas);
                continue;
            }
            let first = applied.events.len();
            state.apply(deltas.into_iter(), &values, &parts, applied);
            // Still under the lock: `note_invalid` compares and adds under it, so that no finding
            // about an outdated object is added after this.
            self.invalid.changed(&applied.events[first..]);
            drop(state);
            // After the lock is released: this takes it again.
            self.settle(kept);
            break;
        }
        if let Some(Delta::StreamMark(mark)) = last {
            self.sweep(mark, applied);
        }
    }

    /// Gives new objects the keys of the cached versions, so that all versions share one text.
    fn adopt_keys(&self, deltas: &mut [Delta<Observed, StreamMark>]) {
        let known = self.state.read().slots.keys_of(deltas);
        for (delta, known) in deltas.iter_mut().zip(known) {
            if let (Delta::Put(seen) | Delta::Delete(seen), Some(key)) = (delta, known) {
                Object::adopt(&mut seen.object, key);
            }
        }
    }

    /// Removes the objects that a list has not shown, in pieces.
    fn sweep(&self, mark: StreamMark, applied: &mut BatchOutcome) {
        let gone = self.state.read().swept(&mark);
        // One lock for each piece, so that readers get in between.
        for gone in gone.chunks(BATCH) {
            let mut state = self.state.write();
            let first = applied.events.len();
            state.sweep(&mark, gone, applied);
            self.invalid.changed(&applied.events[first..]);
        }
        let end = std::iter::once(Delta::StreamMark(mark));
        // The mark comes last: the removals that it implies are among the events before it.
        self.state.write().apply(end, &Values::default(), &[], applied);
    }

    /// Records that this process wrote `object`, whose type may have only some of the fields.
    /// Ignored when the watch was faster.
    ///
    /// Returns true when the watch has shown a later state than the write. Then the watch was
    /// quicker than the answer, or the server's store was set back.
    pub(crate) fn wrote(&self, object: Arc<Object>) -> bool {
        let object = self.keep_own(object);
        self.lay(&object, &object)
    }

    /// As [`wrote`](Self::wrote), for an object as the API server returned it.
    pub(crate) fn wrote_whole(&self, object: Arc<Object>) -> bool {
        let kept = self.keep_whole(&object);
        self.lay(&object, &kept)
    }

    /// Overlays an own write on the state that the watch has shown; index values are read from
    /// `came`.
    fn lay(&self, came: &Arc<Object>, object: &Arc<Object>) -> bool {
        let (plan, tables) = {
            let state = self.state.read();
            (Arc::clone(&state.plan), state.tables.len())
        };
        // Evaluated without the lock: index functions are user code.
        let mut values = Values::default();
        let part = plan.evaluate(came, object, &mut values);
        let mut state = self.state.write();
        let shown = state.shown_beside(object);
        if matches!(shown, Shown::Same | Shown::Later) {
            return shown == Shown::Later;
        }
        let now = self.clock.now();
        let own = Arc::clone(object);
        state.own.wrote(own, (&values, &part, tables), now, shown == Shown::Void);
        // An index was added meanwhile: its values were not computed, so the write counts as
        // unindexed.
        if !Arc::ptr_eq(&state.plan, &plan) {
            state.own.unindex();
        }
        false
    }

    /// Returns the state of an own write to `key` that the watch has not shown.
    pub(crate) fn unseen(&self, key: &ObjectKey) -> Option<Unconfirmed> {
        self.state.read().own.unseen(key, self.clock.now())
    }

    /// Sets how long a watch may be silent. Own writes that it has not shown are remembered for
    /// twice as long, which leaves time to connect and to list anew.
    pub(crate) fn silent_for_at_most(&self, silence: std::time::Duration) {
        self.state.write().own.keep_for(silence.saturating_mul(2));
    }

    /// Records that this process deleted the object of that uid.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.state.write();
        let State { slots, own, .. } = &mut *state;
        let seen = slots.get(parts(key)).map(|slot| &*slot.object);
        own.deleted(key, uid, seen, self.clock.now());
    }

    /// Whether the watch has not shown an own write in time.
    pub(crate) fn is_stale(&self, key: &ObjectKey) -> bool {
        self.state.read().own.is_stale(key, self.clock.now())
    }

    /// Returns the number of cached objects that are known not to decode.
    pub(crate) fn invalid(&self) -> usize {
        self.invalid.len()
    }

    /// Returns the cached objects that are known not to decode, in key order, with the errors.
    pub(crate) fn invalid_list(&self) -> Vec<(Arc<Object>, Arc<str>)> {
        self.invalid.list()
    }

    /// Sets the observer, which is called when an object is found not to decode. Only once.
    pub(crate) fn observe_invalid(&self, observer: Observer) {
        self.invalid.observe(observer);
    }

    /// Returns the error of decoding this version into that type, if it was tried before.
    pub(crate) fn known_invalid(&self, object: &Object, of: TypeId) -> Option<Arc<str>> {
        self.invalid.of(object, of)
    }

    /// Records that `object` did not decode into the type `of`.
    pub(crate) fn note_invalid(&self, object: &Arc<Object>, of: TypeId, message: &Arc<str>) {
        // The read lock is held until the finding is added: `apply_some` removes outdated findings
        // under the write lock, so none can be added behind it.
        let state = self.state.read();
        let slot = state.slots.get(parts(object.key()));
        if !slot.is_some_and(|slot| Arc::ptr_eq(&slot.object, object)) {
            return;
        }
        let news = self.invalid.add(object, of, message);
        drop(state);
        // Without a lock: subscribers of the log and the observer may run for long.
        if news == InvalidChange::First {
            tracing::warn!(
                resource = %self.home.info, object = %object.key(), version = object.version(),
                error = &**message,
                "the object does not decode into its type; it is skipped until it changes"
            );
        }
        if news != InvalidChange::Nothing {
            self.invalid.tell(object, message);
        }
    }

    /// Records that `object` was decoded into the type `of`.
    pub(crate) fn note_valid(&self, object: &Object, of: TypeId) {
        if self.invalid.heal(object, of) {
            tracing::info!(
                resource = %self.home.info, object = %object.key(), version = object.version(),
                "the object decodes again"
            );
        }
    }
}

/// Computes the index values of the objects that are new to the store; never under its lock. `kept`
/// has the objects as they came, if the kept form lacks fields of an index.
fn evaluate(
    deltas: &[Delta<Observed, StreamMark>],
    fresh: &[bool],
    kept: Option<&Conversion>,
    plan: &IndexPlan,
    values: &mut Values,
) -> Vec<Part> {
    if plan.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::with_capacity(deltas.len());
    for (at, delta) in deltas.iter().enumerate() {
        parts.push(match delta {
            Delta::Put(seen) if fresh[at] => {
                let came = kept.and_then(|kept| kept.came(at));
                plan.evaluate(came.unwrap_or(&seen.object), &seen.object, values)
            }
            _ => Part::default(),
        });
    }
    parts
}
