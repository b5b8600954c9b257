//! Conversion of deltas into the form that the store keeps, before they are applied and outside of
//! the store's lock.

use std::sync::Arc;

use super::core::StoreCore;
use crate::delta::Delta;
use crate::store::index::{IndexPlan, detached_values};
use crate::store::object::{InvalidSink, Object};
use crate::store::observed::{Observed, StreamMark};
use crate::store::slots::parts;

/// Result of converting a batch; empty where objects are kept as they come.
#[derive(Default)]
pub(in crate::store) struct ConvertedBatch {
    /// By place in the batch: the object as received, if another form of the object is kept.
    received: Vec<Option<Arc<Object>>>,
    /// Objects that do not decode, with the errors.
    invalid: Vec<(Arc<Object>, Arc<str>)>,
}

impl ConvertedBatch {
    /// Returns the object at that place of the batch as received, if another form of the object is
    /// kept.
    pub(in crate::store) fn received(&self, at: usize) -> Option<&Arc<Object>> {
        self.received.get(at)?.as_ref()
    }

    /// Puts the objects back as they came.
    pub(in crate::store) fn undo(self, deltas: &mut [Delta<Observed, StreamMark>]) {
        for (delta, received) in deltas.iter_mut().zip(self.received) {
            if let (Delta::Put(seen), Some(received)) = (delta, received) {
                seen.object = received;
            }
        }
    }
}

impl StoreCore {
    /// Converts the objects that are new to the store; `plan` decides which index values are kept
    /// beside them.
    pub(in crate::store) fn encode(
        &self,
        deltas: &mut [Delta<Observed, StreamMark>],
        plan: &IndexPlan,
    ) -> ConvertedBatch {
        let mut done = ConvertedBatch::default();
        if self.encoder.settings.is_compact() {
            return done;
        }
        // The lock is held to copy references only: conversion decodes or compresses.
        let before: Vec<Option<Arc<Object>>> = {
            let state = self.state.read();
            let before = |delta: &Delta<Observed, StreamMark>| match delta {
                Delta::Put(seen) => {
                    let slot = state.slots.get(parts(seen.object.key()))?;
                    Some(Arc::clone(&slot.object))
                }
                _ => None,
            };
            deltas.iter().map(before).collect()
        };
        for (delta, before) in deltas.iter_mut().zip(before) {
            let received = match delta {
                Delta::Put(seen) => self.encode_one(seen, before.as_ref(), plan, &mut done.invalid),
                _ => None,
            };
            done.received.push(received);
        }
        done
    }

    /// Converts an object; returns the object as received, if another form is kept.
    fn encode_one(
        &self,
        seen: &mut Observed,
        before: Option<&Arc<Object>>,
        plan: &IndexPlan,
        invalid: &mut Vec<(Arc<Object>, Arc<str>)>,
    ) -> Option<Arc<Object>> {
        if before.is_some_and(|before| Arc::ptr_eq(before, &seen.object)) {
            return None;
        }
        let detached = detached_values::of_path_indexes(&seen.object, plan, &self.encoder.settings);
        match self.encoder.encode(&seen.object, before.map(AsRef::as_ref), &detached) {
            Ok(kept) => Some(std::mem::replace(&mut seen.object, kept)),
            Err(why) => {
                invalid.push((Arc::clone(&seen.object), why.into()));
                None
            }
        }
    }

    /// Converts an object that this process wrote, in the form of the API server's answer.
    pub(in crate::store) fn encode_response(&self, object: &Arc<Object>) -> Arc<Object> {
        let settings = &self.encoder.settings;
        if settings.is_compact() {
            return Arc::clone(object);
        }
        let plan = Arc::clone(&self.state.read().plan);
        let detached = detached_values::of_path_indexes(object, &plan, settings);
        self.encoder.encode(object, None, &detached).unwrap_or_else(|_| Arc::clone(object))
    }

    /// Converts an object that this process wrote through a type. A projection lacks the fields
    /// that the type did not write: for those the object takes the labels and the index values that
    /// readers saw last.
    pub(in crate::store) fn encode_own(&self, object: Arc<Object>) -> Arc<Object> {
        if self.encoder.settings.is_compact() {
            return object;
        }
        let (plan, seen, shown) = {
            let state = self.state.read();
            let seen = state.slots.get(parts(object.key())).map(|slot| &slot.object);
            let shown = state.own.resolve(object.key(), seen, self.clock.now());
            (Arc::clone(&state.plan), seen.cloned(), shown.cloned())
        };
        let settings = &self.encoder.settings;
        let detached = seen.map(|seen| detached_values::known(&seen, &object, &plan, settings));
        let object =
            shown.and_then(|shown| self.encoder.labelled(&object, &shown)).unwrap_or(object);
        self.encoder.encode(&object, None, &detached.unwrap_or_default()).unwrap_or(object)
    }

    /// Finishes a conversion after the batch was applied: records errors, recycles objects and
    /// trains the dictionary.
    pub(in crate::store) fn settle(&self, done: ConvertedBatch) {
        for (object, why) in &done.invalid {
            self.note_invalid(object, self.encoder.settings.decoded_as(), why);
        }
        done.received.into_iter().flatten().for_each(Object::give_back);
        #[cfg(feature = "cold")]
        for waited in self.encoder.train() {
            if let Ok(compressed) = self.encoder.encode(&waited, None, &[]) {
                self.state.write().reshape(&waited, &compressed);
            }
        }
    }
}
