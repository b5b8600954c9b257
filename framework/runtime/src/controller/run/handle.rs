//! A built controller: attaches sources, runs workers and stops them.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::busy::BusyReport;
use super::dump::DumpSource;
use super::erased::{ControllerRun, ControllerState, ErasedController, PlanRun};
use crate::controller::context::ControllerShared;
use crate::controller::reconcile::{
    ObjectStep, ObservedStep, ReconcileObserver, ShadowStep, Tasks,
};
use crate::controller::source::{
    Allowed, Attach, BackgroundRun, Enqueuer, Reads, Reason, RunGuard, TriggerNames, background,
    watches,
};
use crate::controller::spec::ControllerSpec;
use crate::controller::state::{
    Changelog, Drivers, LastErrors, LastReconciled, ObjectMemory, Waits,
};
use crate::controller::worker::{
    HotKey, KeyHandler, LoopGuardState, Worker, WorkerMeter, run_workers, warn_of_aborts,
};
use crate::controller::{ChangeLog, ExternalRegistry, PlannedObject, Reconciler};
use crate::events::Recorder;
use crate::workqueue::{QueueSettings, WorkQueue};
use windlass_cache::informer::{InformerRegistry, Registration};
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names;
use windlass_core::rbac::Rule;
use windlass_core::resource::{ObjectKey, ResourceInfo};

/// Time for writing pending Events after the last reconcile.
const EVENT_FLUSH: Duration = Duration::from_secs(2);
/// Most objects named in a report of a controller that does not settle.
const MAX_REPORTED: usize = 16;
/// Time after which a controller that waits for caches logs it.
const WARN_AFTER: Duration = Duration::from_secs(30);

/// A built controller, in the form that the manager holds.
pub(crate) struct Handle<C: Reconciler> {
    pub(super) spec: Arc<ControllerSpec<C>>,
    /// As built, or as limited by the operator's settings.
    workers: AtomicUsize,
    pub(super) controller: Arc<C>,
    pub(super) memory: Arc<ObjectMemory>,
    loop_guard: Arc<LoopGuardState>,
    last_errors: Arc<LastErrors>,
    waits: Arc<Waits>,
    changes: Arc<Changelog>,
    pub(super) drivers: Arc<Drivers>,
    pub(super) trigger_names: Arc<TriggerNames>,
    attached: OnceLock<Attached>,
    /// Whether there was a run before.
    has_run: AtomicBool,
    /// Time for the running operator to settle, if this one is a shadow.
    shadow: OnceLock<Duration>,
    /// Listeners for the reconciles.
    observers: Mutex<Vec<Arc<dyn ReconcileObserver>>>,
}

/// The parts that need informers.
pub(super) struct Attached {
    pub(super) queue: WorkQueue<ObjectKey>,
    enqueuer: Enqueuer,
    meter: WorkerMeter,
    pub(super) reads: Arc<Reads>,
    informers: InformerRegistry,
    /// Registrations that keep the caches running and deliver keys.
    sources: Vec<Registration>,
    /// The error of the first source that could not be attached.
    refused: Option<Error>,
}

impl<C: Reconciler> Handle<C> {
    pub(crate) fn new(spec: ControllerSpec<C>, controller: C) -> Self {
        let trigger_names = TriggerNames::new(spec.names.clone(), spec.debounce);
        Self {
            workers: AtomicUsize::new(spec.workers),
            changes: Arc::new(Changelog::new(spec.options.change_log)),
            drivers: Arc::new(Drivers::new(
                &spec.name,
                spec.driver_names(&controller, |it| it.are_fields),
            )),
            loop_guard: Arc::new(LoopGuardState::new(spec.options.guard, spec.options.rate)),
            spec: Arc::new(spec),
            trigger_names: Arc::new(trigger_names),
            controller: Arc::new(controller),
            memory: Arc::default(),
            last_errors: Arc::default(),
            waits: Arc::default(),
            attached: OnceLock::new(),
            has_run: AtomicBool::new(false),
            shadow: OnceLock::new(),
            observers: Mutex::default(),
        }
    }

    /// Returns the parts that need informers; the first call connects all sources.
    pub(super) fn attached(&self, informers: &InformerRegistry) -> &Attached {
        self.attached.get_or_init(|| {
            let spec = &self.spec;
            // Relaxed: set by `limit_workers` before the controller is attached.
            let workers = self.workers.load(Ordering::Relaxed);
            let environment = informers.environment();
            let settings = QueueSettings::new(spec.name.as_ref())
                .workers(workers)
                .retry(spec.retry)
                .retried_for(Reason::RETRY.bit())
                .requeued_for(Reason::REQUEUE.bit());
            let queue = WorkQueue::of_objects(settings, environment);
            let enqueuer = Enqueuer::new(
                queue.clone(),
                self.trigger_names.debounce(),
                environment.clock.clone(),
            );
            let meter = WorkerMeter::new(&environment.metrics, &spec.name, workers);
            self.trigger_names
                .paused
                .set_gauge(environment.metrics.gauge(&names::PAUSED, &[&spec.name]));
            let registered = Arc::clone(&self.trigger_names.reads);
            let reads = Reads::new(&spec.name, registered, enqueuer.clone(), &environment.metrics);
            let applied = &self.memory.applied;
            let at = Attach { controller: &spec.name, informers, enqueuer: &enqueuer, applied };
            let own_writes = Arc::clone(&self.memory.own_writes);
            let mut sources = vec![watches::main::<C::Object>(&at, own_writes, spec.when.as_ref())];
            let superseded = Arc::clone(&self.memory.superseded);
            let running = informers.informer::<C::Object>().listen();
            sources.push(running.inline(Box::new(move |events| superseded.observe(events))));
            let mut refused = spec.options.conditions.and_then(|it| it.check(&spec.info).err());
            refused = refused.or_else(|| spec.check_handlers().err());
            for source in &spec.sources {
                match source(&at) {
                    Ok(source) => sources.extend(source),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            sources.iter().for_each(Registration::mark_awaited);
            let informers = informers.clone();
            Attached { queue, enqueuer, meter, reads, informers, sources, refused }
        })
    }

    /// Returns the environment of the background sources in a run.
    fn background_run(&self, run: &ControllerRun, environment: &Environment) -> BackgroundRun {
        BackgroundRun {
            controller: Arc::clone(&self.spec.name),
            enqueuer: self.attached(&run.informers).enqueuer.clone(),
            objects: Arc::new(Allowed {
                store: run.informers.informer::<C::Object>().store(),
                when: self.spec.when.clone(),
            }),
            // The word seeds the randomness of these tasks: another one would change every recorded
            // seed's run.
            environment: environment.fork("pumps"),
        }
    }

    /// Returns the template of a run's workers, and the tasks of objects.
    fn worker(&self, run: &ControllerRun, recorder: Recorder) -> (Worker, Option<Arc<Tasks<C>>>) {
        let spec = &self.spec;
        let Attached { queue, meter, reads, .. } = self.attached(&run.informers);
        let environment = run.client.environment().fork(&spec.name);
        let shared = Arc::new(ControllerShared {
            controller: Arc::clone(&spec.name),
            info: spec.info.clone(),
            client: run.client.field_manager(&spec.name),
            informers: run.informers.clone(),
            recorder,
            queue: queue.clone(),
            memory: Arc::clone(&self.memory),
            reads: Arc::clone(reads),
            trigger_names: Arc::clone(&self.trigger_names),
            drivers: Arc::clone(&self.drivers),
            changes: Arc::clone(&self.changes),
            dry_runs: None,
            conditions: spec.options.conditions,
            environment: environment.clone(),
        });
        let stop = Arc::new(run.stop.clone());
        // A task acts beside the reconciles, so its writes could not be compared.
        let task = spec.options.task.filter(|_| self.shadow.get().is_none());
        let tasks = task.map(|make| {
            let (controller, stop) = (Arc::clone(&self.controller), Arc::clone(&stop));
            Arc::new(Tasks::new(controller, make, Arc::clone(&shared), stop))
        });
        let tracked = spec.options.tracked_bytes;
        let step = ObjectStep {
            controller: Arc::clone(&self.controller),
            store: Arc::new(run.informers.informer::<C::Object>().store()),
            shared,
            spec: Arc::clone(spec),
            last_reconciled: (tracked > 0).then(|| Arc::new(LastReconciled::new(tracked))),
            tasks: tasks.clone(),
        };
        let worker = Worker {
            controller: Arc::clone(&spec.name),
            queue: queue.clone(),
            step: self.handler(step, &environment),
            timeout: spec.timeout,
            retry: spec.retry,
            after_max_retries: spec.options.after_max_retries,
            environment,
            meter: meter.clone(),
            loop_guard: Arc::clone(&self.loop_guard),
            last_errors: Arc::clone(&self.last_errors),
            waits: Arc::clone(&self.waits),
            trigger_names: Arc::clone(&self.trigger_names),
            stop,
            namespaces: Arc::default(),
        };
        (worker, tasks)
    }

    /// Returns the handler of keys: the step, or its shadow; within an observed one if there are
    /// listeners.
    fn handler(&self, step: ObjectStep<C>, environment: &Environment) -> Arc<dyn KeyHandler> {
        let inner = self.unobserved(step, environment);
        let observers = self.observers.lock().clone();
        if observers.is_empty() {
            return inner;
        }
        Arc::new(ObservedStep {
            inner,
            controller: Arc::clone(&self.spec.name),
            info: self.spec.info.clone(),
            trigger_names: Arc::clone(&self.trigger_names),
            observers,
        })
    }

    fn unobserved(&self, step: ObjectStep<C>, environment: &Environment) -> Arc<dyn KeyHandler> {
        let Some(settle_time) = self.shadow.get() else { return Arc::new(step) };
        let reported = environment.metrics.gauge(&names::SHADOW_DIFFERENCES, &[&self.spec.name]);
        reported.set(0.0);
        Arc::new(ShadowStep::new(step, *settle_time, reported))
    }

    /// Starts to accept keys without bound, until the returned guard is dropped. In the first run
    /// the queue holds all objects, unless some were dropped. In later runs all objects that the
    /// predicate lets pass are enqueued, as after a start: another process may have led meanwhile
    /// and stopped halfway, and each object's task has ended.
    fn open(&self, run: &ControllerRun) -> RunGuard {
        let enqueuer = &self.attached(&run.informers).enqueuer;
        let (opened, has_dropped) = enqueuer.open();
        // Relaxed: runs of a controller follow each other, and the flag guards no data.
        if self.has_run.swap(true, Ordering::Relaxed) || has_dropped {
            let mut objects = run.informers.informer::<C::Object>().store().list();
            objects.retain(|object| {
                let when = self.spec.when.as_ref();
                object.metadata().is_terminating() || when.is_none_or(|when| when.allows(object))
            });
            let keys = objects.iter().map(|object| (object.key().clone(), Duration::ZERO));
            enqueuer.enqueue_later(keys.collect(), Reason::STARTED);
        }
        opened
    }

    /// Waits until the controller's caches are filled; false after an earlier stop.
    async fn filled(&self, run: &ControllerRun) -> bool {
        let sources = &self.attached(&run.informers).sources;
        let warn = async {
            run.client.environment().clock.sleep(WARN_AFTER).await;
            let missing: BTreeSet<_> = sources.iter().filter_map(Registration::missing).collect();
            tracing::warn!(
                controller = %self.spec.name,
                ?missing,
                "the controller waits for its caches; controllers with filled caches already run"
            );
            std::future::pending::<()>().await;
        };
        let filled = async {
            for source in sources {
                source.filled().await;
            }
        };
        // Stop comes first, so that a stopped controller reports no missing caches. `warn` never
        // ends.
        tokio::select! {
            biased;
            () = run.stop.cancelled() => false,
            () = filled => true,
            () = warn => false,
        }
    }

    /// Runs the controller for a term; false when reconciles were dropped at the end of the drain.
    async fn work(&self, run: ControllerRun) -> bool {
        warn_of_aborts(&self.spec.name, cfg!(panic = "abort"));
        if !self.filled(&run).await {
            return true;
        }
        tracing::info!(
            controller = %self.spec.name,
            "the controller's caches are filled; the controller starts"
        );
        let clock = run.client.environment().clock.clone();
        let (recorder, writer) = Recorder::new(run.client.clone(), &self.spec.name);
        let flush = CancellationToken::new();
        let mut writing = JoinSet::new();
        // A dry run of an Event would say nothing to anybody.
        if !run.client.is_dry_run() {
            writing.spawn(writer.run(flush.clone()));
        }

        let (worker, tasks) = self.worker(&run, recorder);
        // Held for the whole run: without this guard the queue drops keys beyond a bound.
        let _opened = self.open(&run);
        let waits = Arc::clone(&worker.namespaces);
        // Aborted with the run, when the set is dropped.
        let mut waiting = JoinSet::new();
        waiting.spawn(waits.run(run.informers.clone(), worker.queue.clone()));
        let background_sources = &self.spec.background_sources;
        // The background sources end when this is dropped.
        let _background = background::start(
            background_sources,
            &self.background_run(&run, &worker.environment),
            &run.stop,
        )
        .await;
        // Relaxed: as in `attached`.
        let workers = self.workers.load(Ordering::Relaxed);
        let mut drained = run_workers(&worker, workers, run.drain).await;
        if let Some(tasks) = tasks {
            // Cancelled together with the workers, so they had the whole drain to end already.
            drained &= tasks.end_all(run.drain).await;
        }
        // The next term reconciles every object, in this process or in another process; until then
        // the objects' reads keep no cache running.
        self.trigger_names.reads.clear();
        // The gauges of a process that does not lead show nothing of the last term.
        self.attached(&run.informers).meter.waiting(-(self.waits.clear() as f64));
        self.trigger_names.paused.clear();
        // The writer of Events ends after the last reconcile could have reported an Event.
        flush.cancel();
        // Otherwise the writer is aborted when `writing` is dropped: the drain has used up the
        // time.
        if drained {
            clock.timeout(EVENT_FLUSH, writing.join_next()).await;
        }
        drained
    }
}

impl<C: Reconciler> fmt::Debug for Handle<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.spec.name)
            .field("kind", &self.spec.info.group_resource())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> ErasedController for Handle<C> {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn rules(&self) -> Vec<Rule> {
        self.spec.rules.clone()
    }

    fn grants(&self) -> Vec<(String, Rule)> {
        self.spec.granted.clone()
    }

    fn attach(&self, informers: &InformerRegistry) -> Result<(), Error> {
        let attached = self.attached(informers);
        if !attached.informers.is_same(informers) {
            let text = format!(
                "controller {} belongs to an operator that ran before; build another one",
                self.spec.name
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        let Some(error) = &attached.refused else { return Ok(()) };
        let text = format!("controller {} cannot start: {error}", self.spec.name);
        Err(Error::new(error.kind(), text))
    }

    fn run(&self, run: ControllerRun) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(self.work(run))
    }

    fn follow(&self, settle_time: Duration) {
        // Set once, before the controller runs.
        let _ = self.shadow.set(settle_time);
    }

    fn planned_kind(&self) -> Option<&ResourceInfo> {
        Some(&self.spec.info)
    }

    fn kept_conditions(&self) -> Vec<String> {
        let options = &self.spec.options;
        let declared = options.conditions.map(|kept| kept.types()).unwrap_or_default();
        declared.into_iter().map(str::to_owned).chain(options.outcome.clone()).collect()
    }

    fn driver_names(&self) -> Vec<String> {
        self.spec.driver_names(&self.controller, |_| true)
    }

    fn share_drivers(&self, at_work: &Arc<ExternalRegistry>) {
        self.drivers.share(at_work);
    }

    fn plan(&self, run: PlanRun) -> Pin<Box<dyn Future<Output = Vec<PlannedObject>> + Send + '_>> {
        Box::pin(self.plan_objects(run))
    }

    fn dump(&self, limit: usize) -> Value {
        let keys = self.attached.get().map(|attached| attached.queue.describe(limit));
        let source = DumpSource {
            name: &self.spec.name,
            info: &self.spec.info,
            // Relaxed: set before the run, and a figure for people.
            workers: self.workers.load(Ordering::Relaxed),
            state: self.state(),
            trigger_names: &self.trigger_names,
            keys: keys.unwrap_or_default(),
            errors: self.last_errors.snapshot(),
            waiting: self.waits.snapshot(limit),
            changes: self.changes.snapshot(limit),
            hot: self.loop_guard.hot(limit),
        };
        source.print(limit)
    }

    fn log_changes(&self, detail: ChangeLog) {
        self.changes.set(detail);
    }

    fn observe(&self, observer: Arc<dyn ReconcileObserver>) {
        self.observers.lock().push(observer);
    }

    fn enqueue(&self, key: ObjectKey) {
        if let Some(attached) = self.attached.get() {
            attached.enqueuer.enqueue_later(vec![(key, Duration::ZERO)], Reason::STARTED);
        }
    }

    fn limit_workers(&self, workers: usize) {
        // Relaxed: the manager calls this before the controller is attached, and the start of tasks
        // orders the two.
        self.workers.store(workers.max(1), Ordering::Relaxed);
    }

    fn state(&self) -> ControllerState {
        let Some(attached) = self.attached.get() else { return ControllerState::default() };
        let counts = attached.queue.counts();
        ControllerState {
            queued: counts.queued,
            working: counts.working,
            backing_off: counts.backing_off,
            delayed: counts.delayed,
            reconciles: attached.meter.reconciles(),
        }
    }

    fn busy_report(&self) -> BusyReport {
        let sentence = |hot: &HotKey| {
            format!(
                "{}: reconciled {} times in a row without a change of its spec, and slowed down; \
                 because: {}",
                hot.key,
                hot.count,
                self.trigger_names.named(hot.reasons)
            )
        };
        let endless: Vec<String> = self.loop_guard.hot(MAX_REPORTED).iter().map(sentence).collect();
        let mut now = endless.clone();
        let failing = self.last_errors.snapshot().into_iter().filter(|error| !error.is_over);
        now.extend(failing.take(MAX_REPORTED).map(|error| {
            format!("{}: failed {} times in a row: {}", error.key, error.count, error.text)
        }));
        now.sort();
        BusyReport { now, endless }
    }
}
