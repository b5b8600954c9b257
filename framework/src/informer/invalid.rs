//! Objects that do not decode: found early where that is asked for, and reported.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::core::Core;
use super::listener::{Identity, Listener, Pace};
use super::mailbox::{Item, Merging};
use super::{Validate, registry};
use crate::resource::{ObjectRef, Resource};
use crate::store::{Event, Object};

/// Reports of one informer at once, and how long it takes to earn another.
const BURST: u32 = 50;
const REFILL: Duration = Duration::from_secs(10);

/// A cached object that does not decode into its type.
#[derive(Clone, Debug)]
pub struct InvalidObject {
    /// Which object it is.
    pub object: ObjectRef,
    /// Its resourceVersion.
    pub version: String,
    /// What is wrong, with the path of the field. Never a value of a Secret.
    pub message: Arc<str>,
}

impl fmt::Display for InvalidObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not decode into its type: {}", self.object, self.message)
    }
}

/// Who is told of objects that do not decode. It must not wait.
pub type InvalidReport = Arc<dyn Fn(&InvalidObject) + Send + Sync>;

/// Decodes an object only to see whether it does.
pub(super) type Validator = fn(&Arc<Object>);

/// Reports that one informer may still make.
pub(super) struct Budget {
    left: Mutex<(u32, Option<Instant>)>,
    was_exceeded: AtomicBool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: Mutex::new((BURST, None)), was_exceeded: AtomicBool::new(false) }
    }
}

impl Budget {
    fn spend(&self, now: Instant) -> bool {
        let mut bucket = self.left.lock();
        let (left, since) = &mut *bucket;
        let since = since.get_or_insert(now);
        while *left < BURST && *since + REFILL <= now {
            *left += 1;
            *since += REFILL;
        }
        if *left == BURST {
            *since = now;
        }
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }
}

pub(super) fn validator<K: Resource>(object: &Arc<Object>) {
    // The store notes what does not decode.
    let _ = object.decode::<K>();
}

impl Core {
    /// From now on what does not decode is measured, and reported as the registry says.
    pub(super) fn report_invalid(self: &Arc<Self>, reports: &Arc<registry::Reports>) {
        let (core, reports) = (Arc::downgrade(self), Arc::clone(reports));
        self.store.observe_invalid(Box::new(move |object, message| {
            let Some(core) = core.upgrade() else { return };
            core.measure();
            if let Some(report) = reports.get() {
                core.report(&report, object, message);
            }
        }));
    }

    /// Reports what is known not to decode.
    pub(super) fn report_all(&self, report: &InvalidReport) {
        for (object, message) in self.store.invalid_list() {
            self.report(report, &object, &message);
        }
    }

    fn report(&self, report: &InvalidReport, object: &Arc<Object>, message: &Arc<str>) {
        if self.is_reported_elsewhere.load(Ordering::Relaxed) {
            return;
        }
        if !self.budget.spend(self.seams.clock.now()) {
            if !self.budget.was_exceeded.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    cache = self.name,
                    "too many objects do not decode: some get a log line and no Event"
                );
            }
            return;
        }
        let uid = Some(object.head().uid().to_owned()).filter(|uid| !uid.is_empty());
        report(&InvalidObject {
            object: ObjectRef { info: self.store.info().clone(), key: object.key().clone(), uid },
            version: object.version().to_owned(),
            message: Arc::clone(message),
        });
    }

    /// The informer is used by somebody who reads it as `K`.
    pub(super) fn read_as<K: Resource>(self: &Arc<Self>) {
        if K::static_info().is_none() || self.options.validate != Validate::Eager {
            return;
        }
        if self.validator.set(validator::<K>).is_ok() {
            self.validate();
        }
    }

    /// Decodes every new version on a task of its own, a quarter of the time at most.
    fn validate(self: &Arc<Self>) {
        let identity = Identity {
            name: "validation".to_owned(),
            info: self.store.info().clone(),
            metrics: self.meter.metrics().clone(),
            clock: self.seams.clock.clone(),
        };
        let Some(validator) = self.validator.get().copied() else { return };
        let call = move |item: &Item| {
            if let Item::Change(Event::Added { new, .. } | Event::Updated { new, .. }) = item {
                validator(new);
            }
        };
        let call = Box::new(call);
        self.listen(Listener::internal(identity, Merging::Latest, Pace::Quarter, call));
    }
}
