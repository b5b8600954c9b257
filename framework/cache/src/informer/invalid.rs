//! Reports of objects that do not decode: their content, their receiver and their limit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::store::Object;
use windlass_core::resource::ObjectRef;

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
    /// Kind, namespace and name of the object.
    pub object: ObjectRef,
    /// The resourceVersion that did not decode; a later version is decoded anew.
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

/// The report function for objects that do not decode; none unless a function was set.
#[derive(Default)]
pub(super) struct Reports(Mutex<Option<InvalidReport>>);

impl Reports {
    /// Sets the function, or removes it.
    pub(super) fn set(&self, report: Option<InvalidReport>) {
        let before = std::mem::replace(&mut *self.0.lock(), report);
        // Outside of the lock: the drop of what the function holds is the user's code.
        drop(before);
    }

    /// Returns the function.
    pub(super) fn get(&self) -> Option<InvalidReport> {
        self.0.lock().clone()
    }
}

/// Decodes an object to find out whether decoding succeeds.
pub(super) type Validator = fn(&Arc<Object>);

/// Number of reports that an informer may still make.
pub(super) struct ReportBudget {
    /// Reports left, and the time from which on the next report is earned.
    left: Mutex<(u32, Option<Instant>)>,
    pub(super) was_exceeded: AtomicBool,
}

impl Default for ReportBudget {
    fn default() -> Self {
        Self { left: Mutex::new((BURST, None)), was_exceeded: AtomicBool::new(false) }
    }
}

impl ReportBudget {
    /// Spends a report of the token bucket; false when none is left.
    pub(super) fn spend(&self, now: Instant) -> bool {
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
