//! The untyped part of an informer: the state, and the task that runs the informer.
//!
//! Tasks of an informer: a reflector for each scope, the task that applies batches, and a task for
//! each listener. All end with `stop`; a reflector that panics ends alone, and the status says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::invalid::{ReportBudget, Validator};
use super::listener::{Listener, Listeners, Stage};
use super::meter::Meter;
use super::options::CacheOptions;
use super::progress::{SyncProgress, Synced};
use crate::reflector::{
    DeltaWriter, ListWatch, Reflector, ReflectorDeps, ReflectorState, ReflectorStatus,
    ServerCapabilities, StoreApplyQueue,
};
use crate::store;
use windlass_core::environment::Environment;

/// Longest interval between two measurements of the ages.
const MEASURED_EVERY: Duration = Duration::from_secs(5);

/// A scope of an informer.
pub(super) struct InformerScope {
    pub(super) namespace: Option<Arc<str>>,
    /// The API of the kind in this scope.
    source: Arc<dyn ListWatch>,
    /// State of this scope's reflector.
    pub(super) status: Arc<ReflectorStatus>,
    /// Clock and randomness of this scope.
    environment: Environment,
}

/// The shared part of an informer.
pub(crate) struct InformerCore {
    /// Name in logs, probes and metrics.
    pub(super) name: String,
    /// Options from the creation; they do not change.
    pub(super) options: CacheOptions,
    /// The cache.
    pub(crate) store: Arc<store::StoreCore>,
    /// Queue between the reflectors and the task that applies batches.
    pub(super) apply_queue: StoreApplyQueue,
    /// One scope for each namespace, or a single scope for all.
    pub(super) scopes: Vec<InformerScope>,
    /// Progress of the first lists, and the newest version.
    pub(super) progress: SyncProgress,
    /// The registered listeners.
    pub(super) listeners: Listeners,
    /// Whether the store shows a batch that listeners have not received whole.
    pub(super) is_delivering: AtomicBool,
    /// Whether a reflector's task ended by a panic; the scope of that task is no longer read.
    pub(super) has_panicked: AtomicBool,
    /// Metric series of this informer.
    pub(super) meter: Meter,
    pub(super) environment: Environment,
    /// Time of the informer's creation, from which a silence counts before the first data.
    pub(super) made_at: Instant,
    /// Findings about the server, shared with all informers of the registry.
    capabilities: Arc<ServerCapabilities>,
    /// Stops the informer and the reflectors.
    pub(super) stop: CancellationToken,
    /// Set once the informer validates eagerly.
    pub(super) validator: OnceLock<Validator>,
    /// Limit of reports on objects that do not decode.
    pub(super) budget: ReportBudget,
    /// Whether another component reports objects that do not decode.
    pub(super) is_reported_elsewhere: AtomicBool,
    /// Whether the readers wait for the first list on their own, so that no other controller has
    /// to.
    pub(super) is_awaited: AtomicBool,
    /// Whether the program requested the informer: the readers are unknown, so every controller
    /// waits for the cache, even if `is_awaited`.
    pub(super) is_requested: AtomicBool,
    /// Whether the cache is optional only because some readers can do without the cache: the others
    /// wait for the first list.
    pub(super) is_preferred_optional: AtomicBool,
}

impl InformerCore {
    /// Creates an informer. `name` is for logs and errors; `scopes` are the sources by namespace.
    pub(crate) fn new(
        (name, meter): (String, Meter),
        options: CacheOptions,
        store: Arc<store::StoreCore>,
        scopes: Vec<(Option<String>, Arc<dyn ListWatch>)>,
        context: (Environment, Arc<ServerCapabilities>, CancellationToken),
    ) -> Arc<Self> {
        let (environment, capabilities, stop) = context;
        let scopes: Vec<_> = scopes
            .into_iter()
            .map(|(namespace, source)| {
                let what = match &namespace {
                    Some(namespace) => format!("{name} in {namespace:?}"),
                    None => name.clone(),
                };
                InformerScope {
                    environment: environment.fork(&what),
                    status: Arc::new(ReflectorStatus::new(what)),
                    namespace: namespace.map(Arc::from),
                    source,
                }
            })
            .collect();
        // Own writes that the watch has not shown must outlive the longest silent watch.
        store.silent_for_at_most(options.reading.longest_silence());
        Arc::new(Self {
            meter,
            name,
            options,
            store,
            apply_queue: StoreApplyQueue::default(),
            progress: SyncProgress::new(scopes.len()),
            scopes,
            listeners: Listeners::default(),
            is_delivering: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
            made_at: environment.clock.now(),
            environment,
            capabilities,
            stop,
            validator: OnceLock::new(),
            budget: ReportBudget::default(),
            is_reported_elsewhere: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
            is_requested: AtomicBool::new(false),
            is_preferred_optional: AtomicBool::new(false),
        })
    }

    /// Makes the reflectors check the server's store. Called when the answer to a write is older
    /// than the cached object: another writer may have been faster, or the server's store was set
    /// back.
    pub(super) fn check_rollback(&self) {
        self.scopes.iter().for_each(|scope| scope.status.hint_rollback());
        self.capabilities.request_check();
    }

    /// Returns whether the first list is required and has not come.
    pub(super) fn is_pending(&self) -> bool {
        !self.options.is_optional && self.progress.now() == Synced::Pending
    }

    /// Returns whether a reader waits for the first list, which has not come; `is_dispensable` is
    /// whether the reader can do without the cache.
    pub(super) fn is_pending_for(&self, is_dispensable: bool) -> bool {
        // Relaxed: the flag guards no data.
        let is_required = !is_dispensable && self.is_preferred_optional.load(Ordering::Relaxed);
        (is_required || !self.options.is_optional) && self.progress.now() == Synced::Pending
    }

    /// Returns whether this informer reads `namespace`.
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.scopes
            .iter()
            .any(|scope| scope.namespace.is_none() || scope.namespace.as_deref() == namespace)
    }

    /// Returns whether the cache shows every object of the informer's namespaces, because no
    /// selector limits the cache.
    pub(super) fn is_whole(&self) -> bool {
        self.options.labels.is_none() && self.options.fields.is_none()
    }

    /// Waits until every listener has received the first lists, or has ended.
    pub(super) async fn listeners_synced(&self) {
        for listener in self.listeners.all().into_iter().filter(|listener| !listener.is_internal())
        {
            listener.wait_for(|state| state.is_synced || state.stage == Stage::Ended).await;
        }
    }

    /// Adds a listener.
    pub(super) fn listen(&self, listener: Arc<Listener>) {
        self.listeners.add(listener);
        // The informer's task delivers the content to the new listener.
        self.apply_queue.wake();
    }

    /// Ends an informer that will not run (again): waiters and listeners are notified.
    pub(super) fn end(&self) {
        self.stop.cancel();
        self.progress.stop();
        self.listeners.end();
        self.meter.forget();
    }

    /// Returns the reflectors, one per scope.
    fn reflectors(self: &Arc<Self>) -> Vec<Reflector<DeltaWriter>> {
        let reflector = |(at, scope): (usize, &InformerScope)| {
            let store = Arc::clone(&self.store);
            let writer = DeltaWriter::new(store, self.clone(), at, scope.namespace.clone());
            let deps = ReflectorDeps {
                environment: scope.environment.clone(),
                status: Arc::clone(&scope.status),
                capabilities: Arc::clone(&self.capabilities),
                options: self.options.reading.clone(),
            };
            Reflector::of_informer(Arc::clone(&scope.source), writer, deps)
        };
        self.scopes.iter().enumerate().map(reflector).collect()
    }

    /// Runs the informer until the stop. The informer has ended when this future is dropped, too.
    pub(crate) async fn run(self: Arc<Self>) {
        let ending = InformerGuard(self);
        let core = &ending.0;
        let mut tasks = JoinSet::new();
        // Attended before the reflectors start: listeners from before the start receive the first
        // list on arrival.
        core.attend(&mut tasks);
        for (at, reflector) in core.reflectors().into_iter().enumerate() {
            let stop = core.stop.clone();
            let guard = PanicGuard::of(core, at);
            tasks.spawn(async move {
                let _guard = guard;
                reflector.run(stop).await;
            });
        }
        while !core.stop.is_cancelled() {
            if core.attend(&mut tasks) {
                // Yields: a flood at one informer must not keep others from running.
                tokio::task::yield_now().await;
                continue;
            }
            let next_wake = core.next_wake();
            tokio::select! {
                biased;
                // Biased: a stop goes before queued work, and the timer comes last, so a busy
                // informer measures in `deliver`.
                () = core.stop.cancelled() => break,
                () = core.apply_queue.filled() => {}
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
                () = core.environment.clock.sleep_until(next_wake) => core.measure(),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    }

    /// Returns the time of the next resync or measurement.
    fn next_wake(&self) -> Instant {
        let tick = self.environment.clock.now() + MEASURED_EVERY;
        let members = self.listeners.members();
        members
            .iter()
            .filter_map(|member| member.next_resync())
            .min()
            .map_or(tick, |at| at.min(tick))
    }

    /// Returns whether the listeners have received all that the store shows.
    pub(super) fn is_delivered(&self) -> bool {
        // Before the mailboxes, which `deliver` fills before this flag is cleared.
        !self.is_delivering.load(Ordering::SeqCst)
            && !self.listeners.has_pending()
            && self.listeners.members().iter().all(|member| member.is_idle())
    }
}

/// Reports the end of a reflector's task by a panic; the informer is not synced any more. A
/// reflector returns only when stopped. The task is dropped only where everything ends at once:
/// with the operator's task or with the runtime, which drops tasks in any order. Therefore only a
/// panic is reported.
pub(super) struct PanicGuard {
    core: Arc<InformerCore>,
    scope: usize,
}

impl PanicGuard {
    pub(super) fn of(core: &Arc<InformerCore>, scope: usize) -> Self {
        Self { core: Arc::clone(core), scope }
    }
}

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.core.stop.is_cancelled() {
            // Before the status, whose lock orders both: a task that the status wakes must not find
            // the cache synced.
            self.core.has_panicked.store(true, Ordering::SeqCst);
            let why = "the task of the informer panicked: the cache is not updated until the informer is \
                       created again; see the log, and restart the process";
            if let Some(scope) = self.core.scopes.get(self.scope) {
                scope.status.set(ReflectorState::Degraded(why.to_owned()));
            }
        }
    }
}

/// Ends the informer when the task ends or is dropped.
struct InformerGuard(Arc<InformerCore>);

impl Drop for InformerGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Logs a task that ended by a panic.
pub(super) fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a task of the cache ended by a panic: this is a defect of windlass");
    }
}
