//! Polls: external systems that do not report changes are listed at intervals.
//!
//! A [`Poll`] calls your function every interval, keeps the returned values, and enqueues the
//! objects whose value appeared, changed or disappeared. A reconcile reads the values from the
//! [`PollHandle`] without a request: a thousand objects cost the external system one request per
//! interval. Not included: writes to the system, and values of single objects fetched one by one.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::background::{BackgroundFuture, BackgroundRun, BackgroundSource};
use super::enqueue::EnqueueReason;
use super::reasons::Reason;
use windlass_core::error::BoxError;
use windlass_core::metrics::names;
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::ObjectKey;
use windlass_core::sync::{Mutex, Notify};

/// Default deadline of a list.
const DEADLINE: Duration = Duration::from_secs(30);
/// Least interval between polls.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay after failures, or the interval if that is longer.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

/// Interval and deadline for listing an external system. See [`PollHandle`] for an example.
#[derive(Clone, Debug)]
#[must_use = "a poll does nothing before `list` is called and a controller is given it"]
pub struct Poll {
    name: String,
    interval: Duration,
    deadline: Duration,
}

/// The values of a list, by object.
type Values<V> = BTreeMap<ObjectKey, Arc<V>>;
/// Result of the user's list function.
type Listed<V> = Result<BTreeMap<ObjectKey, V>, BoxError>;
/// The user's list function, boxed.
type ListFn<V> = Box<dyn Fn() -> Pin<Box<dyn Future<Output = Listed<V>> + Send>> + Send + Sync>;

impl Poll {
    /// Creates a poll that runs every `interval` (at least 1 s) after the last run ended, and up to
    /// a tenth later, so that replicas and restarts do not fall into step. `name` is part of the
    /// reason, `poll NAME`, and labels the metric.
    pub fn every(interval: Duration, name: impl Into<String>) -> Self {
        Self { name: name.into(), interval: interval.max(MIN_INTERVAL), deadline: DEADLINE }
    }

    /// Sets the time after which a list is dropped and counts as failed. Default: 30 s.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets the function that lists the external system. It returns the values of all objects by
    /// key, and is called by a single task, never twice at once. Errors are reported in the log and
    /// in `windlass_polls_total`; the next attempt comes after a delay that doubles from the
    /// interval to 5 min.
    pub fn list<V, F>(self, list: impl Fn() -> F + Send + Sync + 'static) -> PollHandle<V>
    where
        V: PartialEq + Send + Sync + 'static,
        F: Future<Output = Result<BTreeMap<ObjectKey, V>, BoxError>> + Send + 'static,
    {
        let shared = PollShared {
            poll: self,
            list: Box::new(move || Box::pin(list())),
            state: Mutex::default(),
            is_wired: AtomicBool::new(false),
            refresh_requested: Notify::new(),
        };
        PollHandle { shared: Arc::new(shared) }
    }
}

/// Results of a [`Poll`], for reconciles to read; cheap to clone.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use std::{collections::BTreeMap, time::Duration};
/// # use windlass::controller::{Action, Context, ControllerBuilder, Poll, PollHandle};
/// # use windlass::controller::{Reconciler, Result};
/// # use windlass::resource::{ObjectKey, ResourceExt};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # type Records = BTreeMap<ObjectKey, String>;
/// # async fn all_records() -> std::result::Result<Records, std::io::Error> { Ok(Records::new()) }
/// struct Sites { dns: PollHandle<String> }
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///     async fn reconcile(&self, site: &ConfigMap, _: &Context<Self>) -> Result {
///         let record = self.dns.get(&site.key());
///         # let _ = record;
///         Ok(Action::done())
///     }
/// }
///
/// let dns = Poll::every(Duration::from_secs(30), "dns")
///     .list(|| async { Ok(all_records().await?) });
/// let controller = ControllerBuilder::<Sites>::new().polls(&dns).build(Sites { dns });
/// ```
///
/// - The first reconcile waits for the first list, but not longer than the list's deadline. Until a
///   list has succeeded, [`has_listed`](Self::has_listed) is false, and values are absent, or come
///   from an earlier term of this replica: do not take them for the system's current state.
/// - An error clears nothing: the last values stay.
/// - The system is polled while the poll's controller runs: not on replicas that do not lead.
pub struct PollHandle<V> {
    shared: Arc<PollShared<V>>,
}

/// State shared by the handles and the background source of a poll.
struct PollShared<V> {
    poll: Poll,
    list: ListFn<V>,
    state: Mutex<State<V>>,
    is_wired: AtomicBool,
    /// Notified by `refresh`.
    refresh_requested: Notify,
}

/// Results of the lists so far.
struct State<V> {
    values: Arc<Values<V>>,
    /// Whether a list succeeded since the controller was last started.
    is_listed: bool,
    listed_at: Option<Instant>,
    error: Option<Arc<str>>,
}

impl<V> Default for State<V> {
    fn default() -> Self {
        Self { values: Arc::default(), is_listed: false, listed_at: None, error: None }
    }
}

impl<V> Clone for PollHandle<V> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<V> fmt::Debug for PollHandle<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollHandle")
            .field("poll", &self.shared.poll)
            .field("values", &self.shared.state.lock().values.len())
            .finish_non_exhaustive()
    }
}

impl<V> PollHandle<V> {
    /// The poll's name.
    pub fn name(&self) -> &str {
        &self.shared.poll.name
    }

    /// Returns the value of an object in the last successful list.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<V>> {
        self.values().get(key).cloned()
    }

    /// Returns all values of the last successful list.
    pub fn values(&self) -> Arc<BTreeMap<ObjectKey, Arc<V>>> {
        Arc::clone(&self.shared.state.lock().values)
    }

    /// Whether a list has succeeded since this replica began to lead, or started the poll's
    /// controller.
    pub fn has_listed(&self) -> bool {
        self.shared.state.lock().is_listed
    }

    /// Returns the time of the last successful list, also of an earlier term: the age of the
    /// values, by the [clock](crate::controller::Context::clock) of the operator. `None` before the
    /// first.
    pub fn listed_at(&self) -> Option<Instant> {
        self.shared.state.lock().listed_at
    }

    /// Returns the error of the last list; `None` after a success.
    pub fn error(&self) -> Option<Arc<str>> {
        self.shared.state.lock().error.clone()
    }

    /// Polls now instead of at the end of the interval; a running poll is followed by another poll.
    pub fn refresh(&self) {
        self.shared.refresh_requested.notify_one();
    }
}

impl<V: PartialEq + Send + Sync + 'static> PollHandle<V> {
    /// Returns the background source for a controller; `None` when the poll has a controller
    /// already.
    pub(crate) fn background_source(&self, reason: Reason) -> Option<Arc<dyn BackgroundSource>> {
        let shared = Arc::clone(&self.shared);
        // One step, so that of two controllers only one gets the source. Relaxed: the flag guards
        // no data; the values are behind a lock.
        let is_free = !shared.is_wired.swap(true, Ordering::Relaxed);
        is_free.then(|| {
            Arc::new(Poller { shared, reason, failures: Mutex::new(0) })
                as Arc<dyn BackgroundSource>
        })
    }
}

/// A running poll.
struct Poller<V> {
    shared: Arc<PollShared<V>>,
    reason: Reason,
    /// Failures in a row.
    failures: Mutex<u32>,
}

impl<V: PartialEq + Send + Sync + 'static> BackgroundSource for Poller<V> {
    fn prepare(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        // Values of an earlier term may be hours old.
        self.shared.state.lock().is_listed = false;
        Box::pin(async move { self.poll_once(&run).await })
    }

    fn run(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        Box::pin(async move {
            loop {
                let wait = self.wait(&run);
                let next = async {
                    // A `refresh` during the sleep leaves a permit in `refresh_requested`: the wait
                    // below then returns at once.
                    run.environment.clock.sleep(self.min_wait(wait)).await;
                    self.shared.refresh_requested.notified().await;
                };
                tokio::select! {
                    biased;
                    () = next => {}
                    () = run.environment.clock.sleep(wait) => {}
                }
                self.poll_once(&run).await;
            }
        })
    }
}

impl<V: PartialEq + Send + Sync + 'static> Poller<V> {
    /// Returns the time until the next poll.
    fn wait(&self, run: &BackgroundRun) -> Duration {
        let interval = self.shared.poll.interval;
        let jitter = |bound| run.environment.rng.jitter(bound);
        match *self.failures.lock() {
            0 => interval.saturating_add(jitter(interval / 10)),
            failures => {
                let factor = 1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX);
                let bound = interval.saturating_mul(factor).min(MAX_BACKOFF.max(interval));
                bound / 2 + jitter(bound / 2)
            }
        }
    }

    /// Returns the least time until the next poll, also for a `refresh`.
    fn min_wait(&self, wait: Duration) -> Duration {
        match *self.failures.lock() {
            0 => MIN_INTERVAL.min(wait),
            _ => wait / 2,
        }
    }

    /// Runs a list, and records the outcome.
    async fn poll_once(&self, run: &BackgroundRun) {
        let Poll { name, deadline, .. } = &self.shared.poll;
        let listing = caught(async { (self.shared.list)().await });
        let (result, trouble) = match run.environment.clock.timeout(*deadline, listing).await {
            // Comparing and dropping values is user code, which may panic.
            Some(Ok(Ok(values))) => {
                match catch_unwind(AssertUnwindSafe(|| self.take(values, run))) {
                    Ok(()) => ("success", None),
                    Err(panic) => ("panic", Some(panicked(&*panic))),
                }
            }
            Some(Ok(Err(error))) => ("error", Some(with_causes(&*error))),
            Some(Err(panic)) => ("panic", Some(panicked(&*panic))),
            None => ("timeout", Some(format!("it took longer than {deadline:?}"))),
        };
        run.environment.metrics.count(&names::POLLS, &[&run.controller, name, result], 1);
        let failures = {
            let mut failures = self.failures.lock();
            *failures = if trouble.is_some() { failures.saturating_add(1) } else { 0 };
            *failures
        };
        let trouble: Option<Arc<str>> = trouble.map(Arc::from);
        // After the lock: a subscriber of logs may call this handle.
        if let Some(error) = &trouble {
            tracing::warn!(controller = %run.controller, poll = name, failures, %error,
                "a poll failed; the values of the last one stay");
        }
        self.shared.state.lock().error = trouble;
    }

    /// Keeps the listed values and enqueues the objects whose value differs.
    fn take(&self, listed: BTreeMap<ObjectKey, V>, run: &BackgroundRun) {
        // Only this task writes the values. Comparing and dropping them is user code, which must
        // not run under the lock.
        let before = Arc::clone(&self.shared.state.lock().values);
        let mut changed: Vec<ObjectKey> = Vec::new();
        let mut values = BTreeMap::new();
        for (key, value) in listed {
            let same = before.get(&key).filter(|before| ***before == value);
            let value = same.map_or_else(|| Arc::new(value), Arc::clone);
            if before.get(&key).is_none_or(|before| !Arc::ptr_eq(before, &value)) {
                changed.push(key.clone());
            }
            values.insert(key, value);
        }
        changed.extend(before.keys().filter(|key| !values.contains_key(key)).cloned());
        let values = Arc::new(values);
        let is_first = {
            let mut state = self.shared.state.lock();
            state.values = values;
            state.is_listed = true;
            state.listed_at.replace(run.environment.clock.now()).is_none()
        };
        // An object that does not exist yet is reconciled on its creation.
        changed.retain(|key| run.objects.has(key));
        // The values of a first list are no changes: their keys get low priority.
        let cause = if is_first {
            EnqueueReason::periodic(self.reason)
        } else {
            EnqueueReason::changed(self.reason)
        };
        run.enqueuer.enqueue(changed.into_iter().map(|key| (key, cause)).collect());
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> String {
    format!("it panicked: {}", panic_text(panic))
}

/// Formats an error and all causes in one line.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    text
}
