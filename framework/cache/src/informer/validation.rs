//! Objects that do not decode: eager detection where that is asked for, and the calls of the
//! registry's function.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::DecodeCheckTime;
use super::core::InformerCore;
use super::invalid::{InvalidObject, InvalidReport, Reports};
use super::listener::{CpuShare, Listener, ListenerIdentity, MailboxItem, MergePolicy};
use crate::store::{Object, StoreEvent};
use windlass_core::resource::{ObjectRef, Resource};

/// Decodes an object as `K`.
fn validator<K: Resource>(object: &Arc<Object>) {
    // The store records objects that do not decode.
    let _ = object.decode::<K>();
}

impl InformerCore {
    /// Makes objects that do not decode be measured and reported to the registry's function from
    /// now on.
    pub(super) fn report_invalid(self: &Arc<Self>, reports: &Arc<Reports>) {
        // Weak: the store, which the informer owns, keeps this function.
        let (core, reports) = (Arc::downgrade(self), Arc::clone(reports));
        self.store.observe_invalid(Box::new(move |object, message| {
            let Some(core) = core.upgrade() else { return };
            core.measure();
            if let Some(report) = reports.get() {
                core.report(&report, object, message);
            }
        }));
    }

    /// Reports all objects that are known not to decode.
    pub(super) fn report_all(&self, report: &InvalidReport) {
        for (object, message) in self.store.invalid_list() {
            self.report(report, &object, &message);
        }
    }

    /// Reports an object, within the budget.
    fn report(&self, report: &InvalidReport, object: &Arc<Object>, message: &Arc<str>) {
        if self.is_reported_elsewhere.load(Ordering::Relaxed) {
            return;
        }
        if !self.budget.spend(self.environment.clock.now()) {
            if !self.budget.was_exceeded.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    cache = self.name,
                    "too many objects do not decode: some get a log line and no Event"
                );
            }
            return;
        }
        let uid = Some(object.metadata().uid().to_owned()).filter(|uid| !uid.is_empty());
        report(&InvalidObject {
            object: ObjectRef { info: self.store.info().clone(), key: object.key().clone(), uid },
            version: object.version().to_owned(),
            message: Arc::clone(message),
        });
    }

    /// Notes that the informer is read as `K`, which starts the validation if validation is eager.
    pub(super) fn read_as<K: Resource>(self: &Arc<Self>) {
        if K::static_info().is_none() || self.options.validate != DecodeCheckTime::Eager {
            return;
        }
        // An informer has a single validator, of the first type that reads the cache.
        if self.validator.set(validator::<K>).is_ok() {
            self.validate();
        }
    }

    /// Starts a task that decodes every new version, for a quarter of the time at most.
    fn validate(self: &Arc<Self>) {
        let identity = ListenerIdentity {
            name: "validation".to_owned(),
            info: self.store.info().clone(),
            metrics: self.meter.metrics().clone(),
            clock: self.environment.clock.clone(),
        };
        let Some(validator) = self.validator.get().copied() else { return };
        let call = move |item: &MailboxItem| {
            if let MailboxItem::Change(
                StoreEvent::Added { new, .. } | StoreEvent::Updated { new, .. },
            ) = item
            {
                validator(new);
            }
        };
        let call = Box::new(call);
        self.listen(Listener::internal(identity, MergePolicy::Latest, CpuShare::Quarter, call));
    }
}
