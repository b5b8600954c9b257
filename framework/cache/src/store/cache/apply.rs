//! Application of batches of deltas, in pieces.
//!
//! A piece is prepared without the lock (form, index values), then applied under the lock. The plan
//! of the indexes is compared in between: if an index was added, the preparation is repeated.

// DESIGN.md, 63: A batch looks up the keys of its objects together

use std::sync::Arc;

use super::convert::ConvertedBatch;
use super::core::StoreCore;
use crate::delta::Delta;
use crate::store::index::{IndexPlan, ValueRange, Values};
use crate::store::object::Object;
use crate::store::observed::{BatchOutcome, Observed, StoreEvent, StreamMark};
use windlass_core::resource::ObjectKey;

/// Deltas applied under a single lock: some 50 µs, so that no reader waits for long.
const BATCH: usize = 128;

impl StoreCore {
    /// Applies deltas in order and returns the changes. Readers get the lock between pieces.
    #[doc(hidden)]
    pub fn apply(&self, batch: Vec<Delta<Observed, StreamMark>>) -> BatchOutcome {
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
                // A sweep removes objects that the preceding deltas have not shown: the sweep ends
                // the piece.
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
            // A separate read lock: user code, which follows, must not run under any.
            let (plan, fresh) = {
                let state = self.state.read();
                (Arc::clone(&state.plan), state.fresh(&deltas))
            };
            let kept = self.encode(&mut deltas, &plan);
            let received =
                if self.encoder.settings.answers(plan.declared()) { None } else { Some(&kept) };
            let parts = evaluate(&deltas, &fresh, received, &plan, &mut values);
            let mut state = self.state.write();
            // An index was added meanwhile, and the new index's values were not computed: start
            // again with the new plan.
            if !Arc::ptr_eq(&state.plan, &plan) {
                drop(state);
                kept.undo(&mut deltas);
                continue;
            }
            let first = applied.events.len();
            state.apply(deltas.into_iter(), &values, &parts, applied);
            // Still under the lock: `note_invalid` compares and adds under that lock, so that no
            // finding about an outdated object is added afterwards.
            self.shared.invalid.changed(applied.events[first..].iter().map(change));
            drop(state);
            // After the lock is released: `settle` takes it again.
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
        // Only this task changes slots, so the places stay valid between the pieces.
        let gone = self.state.read().swept(&mark);
        // A single lock for each piece, so that readers get in between.
        for gone in gone.chunks(BATCH) {
            let mut state = self.state.write();
            let first = applied.events.len();
            state.sweep(&mark, gone, applied);
            self.shared.invalid.changed(applied.events[first..].iter().map(change));
        }
        let end = std::iter::once(Delta::StreamMark(mark));
        // The mark comes last: the removals that the mark implies are among the earlier events.
        self.state.write().apply(end, &Values::default(), &[], applied);
    }
}

/// Returns the key of a change, and the object that is there afterwards.
fn change(event: &StoreEvent) -> (&ObjectKey, Option<&Arc<Object>>) {
    match event {
        StoreEvent::Added { new, .. } | StoreEvent::Updated { new, .. } => (new.key(), Some(new)),
        StoreEvent::Deleted { last, .. } => (last.key(), None),
    }
}

/// Computes the index values of the objects that are new to the store; never under the store's
/// lock. `kept` has the objects as received, if the kept form lacks fields of an index.
fn evaluate(
    deltas: &[Delta<Observed, StreamMark>],
    fresh: &[bool],
    kept: Option<&ConvertedBatch>,
    plan: &IndexPlan,
    values: &mut Values,
) -> Vec<ValueRange> {
    if plan.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::with_capacity(deltas.len());
    for (at, delta) in deltas.iter().enumerate() {
        parts.push(match delta {
            Delta::Put(seen) if fresh[at] => {
                let received = kept.and_then(|kept| kept.received(at));
                plan.evaluate(received.unwrap_or(&seen.object), &seen.object, values)
            }
            _ => ValueRange::default(),
        });
    }
    parts
}
