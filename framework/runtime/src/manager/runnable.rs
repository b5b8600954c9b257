//! Work of the user's own beside the controllers, in the operator's order of start and stop.
//!
//! A report that goes out each night, a server that controllers depend on, a poller of another
//! system: each is a function that returns a future. A runnable is started at its stage, cancelled
//! in the reverse order, and waited for. A runnable that fails or panics is started again, after 1
//! s, then 2 s, and so on up to a minute: work beside the controllers must not end them. A runnable
//! that the operator cannot work without is [`essential`](Runnable::essential): the failure of an
//! essential runnable ends the operator with that error, as every runnable's does in
//! controller-runtime.
//!
//! Not included: a schedule. Sleep by the clock of the context.
//!
//! Invariants: the `work` of a runnable is never called twice at the same time; a stop wins over a
//! restart; a failure after the stop ends nothing but the runnable. The `record` is locked for
//! single updates only, never while the work runs.

// DESIGN.md, 37: A runnable that fails is restarted; only essential runnables end the operator

mod group;

pub(super) use self::group::RunnableGroup;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::WebhookAccess;
use super::probe::Check;
use crate::controller::Failure;
use windlass_cache::informer::InformerRegistry;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::panics::{caught, panic_text};

/// Pause before a runnable that failed is started again; doubles with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// Time after which a runnable has recovered: the next failure counts as the first.
const RECOVERED: Duration = Duration::from_secs(300);

/// Result of a call of the work.
type WorkResult = Result<(), Failure>;
/// Future of a call of the work.
type WorkFuture = Pin<Box<dyn Future<Output = WorkResult> + Send>>;
/// The user's function.
type WorkFunction = dyn Fn(RunContext) -> WorkFuture + Send + Sync;
/// Function that returns checks of readiness.
type Checks = dyn Fn() -> Vec<Check> + Send + Sync;
/// Function that returns parts of the manifests.
type Attaching = dyn Fn(&ManifestContext<'_>) -> Result<RunnableManifest, Error> + Send + Sync;

/// Name and namespace of an operator in the manifests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ManifestContext<'a> {
    pub name: &'a str,
    pub namespace: &'a str,
    /// Labels of the operator's Pods.
    pub labels: &'a Value,
    /// Names of the definitions that the operator installs or prints: `websites.example.dev`.
    pub definitions: &'a [String],
}

/// Parts of the manifests that a runnable needs.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct RunnableManifest {
    /// Ports that the container serves, by name.
    pub ports: Vec<(&'static str, u16)>,
    /// Secrets that are mounted: name of the volume, name of the Secret, path.
    pub secrets: Vec<(&'static str, String, String)>,
    /// Roles and bindings.
    pub roles: Vec<Value>,
    /// Objects after the Deployment.
    pub objects: Vec<Value>,
    /// The field `spec.conversion` of definitions, by their names.
    pub conversions: Vec<(String, Value)>,
    /// Reason why the parts work in no cluster.
    pub problem: Option<String>,
}

/// Context of a runnable: client, caches, clock and the request to stop; cheap to clone.
///
/// The clones share one request to stop, so a runnable may pass them to its own tasks.
#[derive(Clone, Debug)]
pub struct RunContext {
    client: Client,
    /// The operator's caches, filled unless the runnable comes before them.
    informers: InformerRegistry,
    clock: Clock,
    /// Cancelled when the runnable must stop.
    stop: CancellationToken,
    /// Cancelled once the runnable has started.
    started: CancellationToken,
    names: Arc<OperatorInfo>,
}

/// Names of an operator, for runnables with objects of their own.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct OperatorInfo {
    /// Name in the manifests.
    pub name: String,
    /// Names of the definitions that the operator installs or prints: `websites.example.dev`.
    pub definitions: Vec<String>,
    /// URL of webhooks outside of a cluster.
    pub webhooks: Option<WebhookAccess>,
    /// Cancelled once this process has installed the definitions, or found them served.
    pub installed: CancellationToken,
}

impl RunContext {
    /// Returns the operator's client. A runnable with leadership gets a client whose writes check
    /// the lease.
    ///
    /// Writes of a runnable with leadership are refused with
    /// [`ErrorKind::NotLeader`](windlass_core::ErrorKind::NotLeader) once the lease is lost.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the operator's caches.
    ///
    /// A kind that no controller reads yet is cached from the first request of an informer on.
    pub fn informers(&self) -> &InformerRegistry {
        &self.informers
    }

    /// Returns the operator's clock.
    ///
    /// Sleeps by this clock can be paused in tests.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Waits until the runnable must stop: the operator stops, or leadership is lost.
    ///
    /// After the first return, later calls return at once.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Reports that the work has started, for a runnable that is [awaited](Runnable::awaited), for
    /// example when a server listens. Later calls change nothing.
    pub fn started(&self) {
        self.started.cancel();
    }

    /// Returns the names of the operator.
    #[doc(hidden)]
    pub fn names(&self) -> &OperatorInfo {
        &self.names
    }

    /// Returns the same request to stop as a token.
    pub fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }
}

/// Stage in which a runnable runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunnableStage {
    /// From before the definitions are installed until after the caches have stopped.
    BeforeCaches,
    /// Once all caches are filled, on every replica.
    Always,
    /// Once all caches are filled, while this process leads.
    Leading,
}

/// Work beside the controllers.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::{client::Client, manager::{Manager, Runnable}};
/// # async fn send_report() -> windlass::controller::Result<()> { Ok(()) }
/// # fn example(client: Client) -> Manager {
/// let report = Runnable::new("report", |cx| async move {
///     while !cx.stop().is_cancelled() {
///         send_report().await?;
///         let day = std::time::Duration::from_secs(24 * 3600);
///         tokio::select! { biased;
///             () = cx.stopped() => {}
///             () = cx.clock().sleep(day) => {}
///         }
///     }
///     Ok(())
/// });
/// Manager::new(client).leader_election("reports").runnable(report.with_leadership())
/// # }
/// ```
///
/// | setting | runs on | from | restart after a failure |
/// |---|---|---|---|
/// | none | every replica | caches are filled | 1 s, doubling to 60 s |
/// | [`with_leadership`](Self::with_leadership) | the leader | the term begins | the same |
/// | [`before_caches`](Self::before_caches) | every replica | the start | the same |
/// | [`essential`](Self::essential) | as above | as above | none: the operator ends |
///
/// [`awaited`](Self::awaited) and [`readiness`](Self::readiness) are for servers.
#[must_use = "a runnable does nothing until it is given to a manager"]
pub struct Runnable {
    /// Name in logs, errors and the debug page; unique in a manager.
    name: Arc<str>,
    /// Stage in which the work runs.
    stage: RunnableStage,
    /// Whether a failure ends the operator.
    essential: bool,
    /// Whether later stages wait until the work has started.
    awaited: bool,
    /// The user's function; called again for each restart and each term.
    work: Box<WorkFunction>,
    /// Checks of readiness.
    checks: Option<Box<Checks>>,
    /// Parts of the manifests.
    attached: Option<Box<Attaching>>,
    /// State for probes and the debug page.
    pub(super) record: Mutex<RunnableRecord>,
}

/// State of a runnable, for the debug page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunnableRecord {
    /// Present activity.
    pub(super) state: RunnableState,
    /// Failures since the start.
    pub(super) failures: u64,
    /// Text of the last failure, kept after a recovery.
    pub(super) last_error: Option<String>,
}

/// Progress of a runnable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum RunnableState {
    /// Not started yet: the stage has not begun, or the caches are not filled.
    #[default]
    Waiting,
    /// The work runs.
    Running,
    /// The work failed, and pauses before the next call.
    Restarting,
    /// The work is done, was cancelled, or failed although essential.
    Ended,
}

impl Runnable {
    /// Creates a runnable from `work` under a name. The work runs on every replica, once all caches
    /// are filled, because the manager does not know which caches the work reads. `work` is called
    /// once, again after a failure, and again in each term of a runnable with leadership. The
    /// future must return on cancellation; returning `Ok` earlier means that the work is done.
    ///
    /// # Cancel safety
    /// The future is dropped if unfinished by the end of the drain.
    /// # Errors
    /// The work's failure, which may be any error by `?`, is logged and followed by a restart.
    pub fn new<F, R>(name: impl Into<String>, work: F) -> Self
    where
        F: Fn(RunContext) -> R + Send + Sync + 'static,
        R: Future<Output = WorkResult> + Send + 'static,
    {
        Self {
            name: Arc::from(name.into()),
            stage: RunnableStage::Always,
            essential: false,
            awaited: false,
            checks: None,
            attached: None,
            work: Box::new(move |cx| Box::pin(work(cx))),
            record: Mutex::default(),
        }
    }

    /// Runs the work only while this process leads, beside the controllers; without an election
    /// always.
    ///
    /// The runnable starts again in each term. When the lease is lost, the runnable has 2 s to end
    /// before its work is dropped.
    pub fn with_leadership(mut self) -> Self {
        self.stage = RunnableStage::Leading;
        self
    }

    /// Runs the work from before the definitions are installed and the caches fill until after they
    /// stopped: for services that those depend on, such as a server of conversions.
    pub fn before_caches(mut self) -> Self {
        self.stage = RunnableStage::BeforeCaches;
        self
    }

    /// Makes a failure or a panic end the operator, with the error: the operator cannot work
    /// without this runnable. A failure after the request to stop, or because the lease was lost,
    /// only ends the runnable.
    ///
    /// The error of [`Manager::run`](super::Manager::run) has the kind of the failure's error, and
    /// so does the exit code.
    pub fn essential(mut self) -> Self {
        self.essential = true;
        self
    }

    /// Makes the caches, and all that comes after them, wait until the work has called
    /// [`RunContext::started`], for at most 10 s. For a runnable [before
    /// caches](Self::before_caches).
    pub fn awaited(mut self) -> Self {
        self.awaited = true;
        self
    }

    /// Adds checks to the readiness of the operator. `checks` is called for each probe: it reads
    /// state, and does not wait.
    ///
    /// controller-runtime's `mgr.AddReadyzCheck`.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// use windlass::manager::{Check, Runnable};
    ///
    /// let server = Runnable::new("reports", |cx| async move { Ok(cx.stopped().await) });
    /// let server = server.readiness(|| {
    ///     vec![Check { name: "reports".into(), ok: true, detail: "12 clients".into() }]
    /// });
    /// # let _ = server;
    /// ```
    pub fn readiness(mut self, checks: impl Fn() -> Vec<Check> + Send + Sync + 'static) -> Self {
        self.checks = Some(Box::new(checks));
        self
    }

    /// Adds parts to the manifests.
    #[doc(hidden)]
    pub fn attaching(
        mut self,
        parts: impl Fn(&ManifestContext<'_>) -> Result<RunnableManifest, Error> + Send + Sync + 'static,
    ) -> Self {
        self.attached = Some(Box::new(parts));
        self
    }

    /// Returns the checks of readiness.
    pub(super) fn checks(&self) -> Vec<Check> {
        self.checks.as_ref().map(|checks| checks()).unwrap_or_default()
    }

    /// Returns the parts of the manifests.
    pub(super) fn attachment(
        &self,
        place: &ManifestContext<'_>,
    ) -> Result<RunnableManifest, Error> {
        self.attached.as_ref().map_or_else(|| Ok(RunnableManifest::default()), |parts| parts(place))
    }

    /// Name in logs and errors.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Stage in which the work runs.
    pub(super) fn stage(&self) -> RunnableStage {
        self.stage
    }

    /// Runs the work until done or cancelled; again after failures. Returns the error of an
    /// essential runnable.
    async fn run(&self, cx: &RunContext) -> Result<(), Error> {
        let mut pause = FIRST_PAUSE;
        while !cx.stop.is_cancelled() {
            self.record.lock().state = RunnableState::Running;
            let began = cx.clock.now();
            // A panic counts as a failure, and must not end the group's task.
            let outcome = caught(async { (self.work)(cx.clone()).await }).await;
            let failure = match outcome {
                Ok(Ok(())) => break,
                Ok(Err(failure)) => failure,
                Err(panic) => Failure::from(format!("it panicked: {}", panic_text(panic.as_ref()))),
            };
            self.record_failure(&failure);
            if cx.stop.is_cancelled() {
                // A failure after the request to stop neither restarts the runnable nor ends the
                // operator.
                warn!(error = %failure, "the runnable failed while it stopped");
                break;
            }
            // A write refused for want of the lease is no failure of the runnable, whose
            // cancellation follows soon.
            if self.essential && kind_of(&failure) != ErrorKind::NotLeader {
                return Err(self.ended(failure));
            }
            if cx.clock.now().saturating_duration_since(began) >= RECOVERED {
                // A single failure after a long run is not a crash loop.
                pause = FIRST_PAUSE;
            }
            warn!(error = %failure, again_in = ?pause, "the runnable failed");
            tokio::select! {
                biased;
                // A stop ends the pause at once.
                () = cx.stop.cancelled() => {}
                () = cx.clock.sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.record.lock().state = RunnableState::Ended;
        info!("the runnable ended");
        Ok(())
    }

    /// Records a failure for probes and the debug page.
    fn record_failure(&self, failure: &Failure) {
        let mut record = self.record.lock();
        record.state =
            if self.essential { RunnableState::Ended } else { RunnableState::Restarting };
        record.failures += 1;
        record.last_error = Some(failure.to_string());
    }

    /// Returns the error that ends the operator after the failure of an essential runnable.
    fn ended(&self, failure: Failure) -> Error {
        let kind = kind_of(&failure);
        let text =
            format!("the runnable {:?} failed; it is essential, so the operator ends", self.name);
        Error::new(kind, text).because(failure.source)
    }
}

/// Returns the kind of the framework's error behind a failure, `Other` if there is none.
fn kind_of(failure: &Failure) -> ErrorKind {
    failure.cause().downcast_ref::<Error>().map_or(ErrorKind::Other, Error::kind)
}

impl fmt::Debug for Runnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runnable")
            .field("name", &self.name)
            .field("stage", &self.stage)
            .field("essential", &self.essential)
            .field("record", &self.record.lock())
            .finish_non_exhaustive()
    }
}
