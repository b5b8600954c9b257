//! Objects that do not decode: eager detection where that is asked for, and reports.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::core::Core;
use super::listener::{CpuShare, Item, Listener, ListenerIdentity, MergePolicy};
use super::{DecodeCheck, registry};
use crate::store::{Event, Object};
use windlass_core::resource::{ObjectRef, Resource};

/// Reports that an informer may make at once.
const BURST: u32 = 50;
/// Time that earns another report.
const REFILL: Duration = Duration::from_secs(10);

/// A cached object that does not decode into the type.
///
/// Such an object was written before a schema was tightened, or by a newer version of the program;
/// the cache keeps the object, so that the object is not taken for deleted.
#[derive(Clone, Debug)]
pub struct InvalidObject {
    /// The object.
    pub object: ObjectRef,
    /// The object's resourceVersion.
    pub version: String,
    /// The error, with the path of the field. Never contains a value of a Secret.
    pub message: Arc<str>,
}

impl fmt::Display for InvalidObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not decode into its type: {}", self.object, self.message)
    }
}

/// Function that receives reports of objects that do not decode. The function must not block.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// # use windlass::informer::InformerRegistry;
/// # fn example(informers: &InformerRegistry) {
/// use std::sync::Arc;
/// use windlass::informer::InvalidObject;
///
/// informers.report_invalid(Some(Arc::new(|invalid: &InvalidObject| eprintln!("{invalid}"))));
/// # }
/// ```
pub type InvalidReport = Arc<dyn Fn(&InvalidObject) + Send + Sync>;

/// Decodes an object to find out whether decoding succeeds.
pub(super) type Validator = fn(&Arc<Object>);

/// Number of reports that an informer may still make.
pub(super) struct ReportBudget {
    /// Reports left, and the time from which on the next report is earned.
    left: Mutex<(u32, Option<Instant>)>,
    was_exceeded: AtomicBool,
}

impl Default for ReportBudget {
    fn default() -> Self {
        Self { left: Mutex::new((BURST, None)), was_exceeded: AtomicBool::new(false) }
    }
}

impl ReportBudget {
    /// Spends a report of the token bucket; false when none is left.
    fn spend(&self, now: Instant) -> bool {
        let mut bucket = self.left.lock();
        let (left, since) = &mut *bucket;
        let since = since.get_or_insert(now);
        while *left < BURST && *since + REFILL <= now {
            *left += 1;
            *since += REFILL;
        }
        // A full bucket earns nothing: the time for the next report begins now.
        if *left == BURST {
            *since = now;
        }
        let is_left = *left > 0;
        *left = left.saturating_sub(1);
        is_left
    }
}

/// Decodes an object as `K`.
pub(super) fn validator<K: Resource>(object: &Arc<Object>) {
    // The store records objects that do not decode.
    let _ = object.decode::<K>();
}

impl Core {
    /// Makes objects that do not decode be measured and reported to the registry's function from
    /// now on.
    pub(super) fn report_invalid(self: &Arc<Self>, reports: &Arc<registry::Reports>) {
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
        if K::static_info().is_none() || self.options.validate != DecodeCheck::Eager {
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
        let call = move |item: &Item| {
            if let Item::Change(Event::Added { new, .. } | Event::Updated { new, .. }) = item {
                validator(new);
            }
        };
        let call = Box::new(call);
        self.listen(Listener::internal(identity, MergePolicy::Latest, CpuShare::Quarter, call));
    }
}
