//! Long-lived task for each object: a watchdog, a poller, a connection that an object needs
//! throughout its life.
//!
//! The task of an object starts after the first successful reconcile and receives each reconciled
//! version. The task is cancelled and awaited before the object's clean-up runs, when the object is
//! gone, and when the controller stops or loses the lease. A task that fails or panics is started
//! again with backoff and affects nothing else.
//!
//! Not included: state. After a restart or a change of leaders every task starts anew.
//!
//! The map of tasks is locked for single operations only. `reconciled` and `end` of one key never
//! run at the same time, because a single worker at a time holds the key; `end_all` runs after the
//! workers.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::controller::context::{ControllerShared, TaskContext};
use crate::controller::spec::{MakeTask, TaskFuture};
use crate::controller::worker::ABORT_LIMIT;
use crate::controller::{Reconciler, Result};
use crate::workqueue::RetryPolicy;
use windlass_cache::store::Cached;
use windlass_core::environment::Environment;
use windlass_core::metrics::{CounterSeries, GaugeSeries, names};
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::ObjectKey;

/// Time for a cancelled task to end before being dropped.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait before the first restart; the bound doubles up to `LONGEST_RESTART`.
const FIRST_RESTART: Duration = Duration::from_secs(1);
/// Longest wait before a restart.
const LONGEST_RESTART: Duration = Duration::from_secs(300);

/// Runs a task beside each object, for as long as the object lives; enabled by
/// [`ControllerBuilder::task_per_object`](crate::controller::ControllerBuilder::task_per_object).
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::controller::{ObjectTask, TaskContext};
/// use windlass::controller::ControllerBuilder;
/// use windlass::prelude::*;
///
/// struct Sites;
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
///         Ok(Action::done())
///     }
/// }
///
/// # async fn answers(_: &ConfigMap) -> bool { true }
/// impl ObjectTask for Sites {
///     /// Probes the site every ten seconds, and has it reconciled when it does not answer.
///     async fn run(&self, mut task: TaskContext<Self>) -> Result<()> {
///         let clock = task.clock().clone();
///         loop {
///             if !answers(&*task.object()?).await {
///                 task.requeue();
///             }
///             tokio::select! {
///                 biased;
///                 alive = task.changed() => if !alive { return Ok(()) },
///                 () = clock.sleep(Duration::from_secs(10)) => {}
///             }
///         }
///     }
/// }
///
/// let builder = ControllerBuilder::<Sites>::new().task_per_object();
/// # let _ = builder;
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no task per object",
    note = "implement `windlass::controller::ObjectTask`: `async fn run(&self, task)`"
)]
pub trait ObjectTask: Reconciler {
    /// Runs the task of one object. The task should end soon after [`TaskContext::cancelled`]
    /// returns; 10 s later the task is dropped. After a return of `Ok` the object has no task until
    /// the controller starts again; after an error or a panic the task is started again with
    /// backoff (1 s to 5 min).
    ///
    /// # Cancel safety
    /// The future is dropped if it does not end in time.
    /// # Errors
    /// Any error is logged and counted, and the task starts again.
    fn run(&self, task: TaskContext<Self>) -> impl Future<Output = Result<()>> + Send;
}

/// Boxes the task of a controller, so that only controllers with tasks require [`ObjectTask`].
pub(crate) fn boxed_task<C: ObjectTask>(controller: &C, task: TaskContext<C>) -> TaskFuture<'_> {
    Box::pin(controller.run(task))
}

/// Task of an object, running or ended by itself.
struct Task<K> {
    /// Distinguishes the object from a successor of the same name, which gets a separate task.
    uid: String,
    /// Child of the controller's token, so that the end of the controller ends the task.
    stop: CancellationToken,
    /// Sender of the reconciled versions.
    latest: watch::Sender<Cached<K>>,
    /// Aborts the task on drop: a dropped wait for its end must not leave it running beside the
    /// object's clean-up.
    handle: AbortOnDropHandle<()>,
}

/// The tasks of one run of a controller.
pub(crate) struct Tasks<C: Reconciler> {
    /// The reconciler, which runs the tasks.
    controller: Arc<C>,
    /// Constructor of a task's future.
    make: MakeTask<C>,
    /// State of the run.
    shared: Arc<ControllerShared>,
    /// Cancelled when the controller stops or loses the lease.
    stop: Arc<CancellationToken>,
    /// Number of running tasks.
    running: GaugeSeries,
    /// Number of restarts.
    restarts: CounterSeries,
    /// The tasks by object. Ended tasks stay until their object ends, so that an `Ok` is no
    /// restart.
    tasks: Mutex<BTreeMap<ObjectKey, Task<C::Object>>>,
}

impl<C: Reconciler> Tasks<C> {
    /// Creates an empty set for a run of the controller.
    pub(crate) fn new(
        controller: Arc<C>,
        make: MakeTask<C>,
        shared: Arc<ControllerShared>,
        stop: Arc<CancellationToken>,
    ) -> Self {
        let metrics = &shared.environment.metrics;
        let running = metrics.gauge(&names::OBJECT_TASKS, &[&shared.controller]);
        let restarts = metrics.counter(&names::OBJECT_TASK_RESTARTS, &[&shared.controller]);
        let tasks = Mutex::default();
        Self { controller, make, shared, stop, running, restarts, tasks }
    }

    /// Starts the task of a reconciled object, or passes the new version to the running task.
    pub(crate) async fn reconciled(&self, object: &Cached<C::Object>) {
        let uid = object.metadata().uid().to_owned();
        // The lock is not held across the wait for a predecessor's end.
        let known = self.tasks.lock().get(object.key()).map(|task| task.uid == uid);
        match known {
            Some(true) => {
                if let Some(task) = self.tasks.lock().get(object.key()) {
                    task.latest.send_replace(object.clone());
                }
                return;
            }
            // The task belongs to a predecessor of the same name.
            Some(false) => self.end(object.key()).await,
            None => {}
        }
        // A reconcile that ends during or after the drain must not start a task that `end_all`
        // misses.
        if !self.stop.is_cancelled() {
            self.start(uid, object);
        }
    }

    /// Spawns the task of an object.
    fn start(&self, uid: String, object: &Cached<C::Object>) {
        let (latest, receiver) = watch::channel(object.clone());
        let stop = self.stop.child_token();
        let key = object.key().clone();
        let supervisor = Supervisor {
            controller: Arc::clone(&self.controller),
            make: self.make,
            environment: self.shared.environment.clone(),
            restarts: self.restarts.clone(),
            _running: RunningGauge::new(&self.running),
        };
        let task = TaskContext::new(Arc::clone(&self.shared), receiver, key.clone(), stop.clone());
        let span = tracing::info_span!(
            "object_task",
            controller = %self.shared.controller,
            namespace = key.namespace().unwrap_or_default(),
            name = key.name(),
        );
        let handle = tokio::spawn(supervisor.run(task).instrument(span));
        self.tasks
            .lock()
            .insert(key, Task { uid, stop, latest, handle: AbortOnDropHandle::new(handle) });
    }

    /// Cancels the task of an object and waits for the end, at most 10 s.
    ///
    /// # Cancel safety
    /// Dropping the future aborts the task.
    pub(crate) async fn end(&self, key: &ObjectKey) {
        let Some(mut task) = self.tasks.lock().remove(key) else { return };
        task.stop.cancel();
        if !self.wait_for_end(key, &mut task.handle, END_LIMIT).await {
            // A task that blocks its thread cannot be dropped before its next yield.
            self.shared.environment.clock.timeout(ABORT_LIMIT, &mut task.handle).await;
        }
    }

    /// Cancels all tasks and waits for them, at most `limit` for all together; true when they ended
    /// by themselves.
    pub(crate) async fn end_all(&self, limit: Duration) -> bool {
        let tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.values().for_each(|task| task.stop.cancel());
        let clock = &self.shared.environment.clock;
        let deadline = clock.after(limit.min(END_LIMIT));
        let mut all_ended = true;
        // All tasks are cancelled before the first wait, so that they end side by side.
        for (key, mut task) in tasks {
            let left = deadline.saturating_duration_since(clock.now());
            all_ended &= self.wait_for_end(&key, &mut task.handle, left).await;
        }
        all_ended
    }

    /// Waits for the end of a task; after `limit` aborts the task and returns false.
    async fn wait_for_end(
        &self,
        key: &ObjectKey,
        handle: &mut AbortOnDropHandle<()>,
        limit: Duration,
    ) -> bool {
        if self.shared.environment.clock.timeout(limit, &mut *handle).await.is_some() {
            return true;
        }
        tracing::warn!(
            controller = %self.shared.controller,
            object = %key,
            "the task of an object was cancelled and did not end; it is dropped"
        );
        handle.abort();
        false
    }
}

impl<C: Reconciler> Drop for Tasks<C> {
    /// Cancels the tasks of a run that was dropped.
    fn drop(&mut self) {
        for task in self.tasks.lock().values() {
            task.stop.cancel();
        }
    }
}

/// Guard that counts a task as running.
struct RunningGauge(GaugeSeries);

impl RunningGauge {
    fn new(gauge: &GaugeSeries) -> Self {
        gauge.add(1.0);
        Self(gauge.clone())
    }
}

impl Drop for RunningGauge {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}

/// Runs the task of one object, and restarts it after failures.
struct Supervisor<C: Reconciler> {
    controller: Arc<C>,
    make: MakeTask<C>,
    environment: Environment,
    restarts: CounterSeries,
    _running: RunningGauge,
}

impl<C: Reconciler> Supervisor<C> {
    /// Runs the task until the result `Ok` or a cancellation.
    async fn run(self, task: TaskContext<C>) {
        let policy = RetryPolicy::forever().between(FIRST_RESTART, LONGEST_RESTART);
        let mut failures = 0;
        loop {
            let began = self.environment.clock.now();
            // The call itself is user code as well, and may panic.
            let running = async { (self.make)(&self.controller, task.another()).await };
            let error = match caught(running).await {
                Ok(Ok(())) => return,
                Ok(Err(failure)) => failure.to_string(),
                Err(panic) => format!("it panicked: {}", panic_text(&*panic)),
            };
            if task.cancellation().is_cancelled() {
                tracing::debug!(error, "the task of an object failed while it ended");
                return;
            }
            let ran = self.environment.clock.now().saturating_duration_since(began);
            // A task that ran this long counts as healthy before the failure.
            failures = if ran >= LONGEST_RESTART { 1 } else { failures + 1 };
            let bound = policy.bound(failures).unwrap_or(LONGEST_RESTART);
            // At least half of the bound, so that restarts keep a distance.
            let again_in = bound / 2 + self.environment.rng.jitter(bound / 2);
            tracing::warn!(error, failures, ?again_in, "the task of an object failed");
            tokio::select! {
                biased;
                () = task.cancelled() => return,
                () = self.environment.clock.sleep(again_in) => self.restarts.count(1),
            }
        }
    }
}
