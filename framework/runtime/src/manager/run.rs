//! The stages of an operator, from the first server that opens to the last that closes.
//!
//! Each stage starts parts, runs the next stage, and stops these parts: servers, runnables that
//! caches depend on, definitions and caches, runnables, terms of leadership, controllers (in
//! `controllers`). The first failure of any part is kept, and everything stops as on a request to
//! stop.

// DESIGN.md, 11: Only the Lease, its Events and dry runs bypass the write gate
// DESIGN.md, 56: Before the first list a 404 must be confirmed, and installed kinds are looked for
// DESIGN.md, 62: A controller waits for its own caches; caches of unknown readers are awaited by

mod controllers;
mod definitions;
mod set_up;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::field::display;
use tracing::{debug, error, info, warn};

use self::set_up::set_up;
use super::endpoints::SharedStatus;
use super::endpoints::http::{Endpoints, bind, is_one, serve};
use super::runnable::{RunnableGroup, RunnableStage};
use super::running::{Addresses, Running};
use super::{Bind, Exit, Manager, signals};
use crate::controller::ChangeLog;
use crate::leader::Term;
use windlass_client::client::{Client, WriteGate};
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};

/// Time for the framework's own bookkeeping, beyond the drain time that work was given.
const GRACE: Duration = Duration::from_secs(1);
/// Time that caches wait for this process to lead and to install definitions: a kind that is not
/// served yet would be found absent.
const HEAD_START: Duration = Duration::from_secs(3);
/// Time that controllers wait for the objects of kinds that this process installs. An API server
/// begins to serve a new version within a second; a kind not served by then may never come.
const SERVED_WITHIN: Duration = Duration::from_secs(10);
/// Time that a replica waits for caches before the campaign for the lease: a replica whose caches
/// are filled leads first.
const CACHE_SYNC_TIMEOUT: Duration = Duration::from_secs(30);
/// Bounds of the pause between two requests for kinds that are not served yet; the pause doubles.
const FIRST_POLL: Duration = Duration::from_millis(10);
const LONGEST_POLL: Duration = Duration::from_millis(500);

/// State that the main task owns.
struct Operator {
    client: Client,
    clock: Clock,
    definitions: Vec<Result<CustomResourceDefinition, Error>>,
    force_install: bool,
    workers: Option<usize>,
    /// Time for the running operator to settle, before its shadow reports differences.
    shadow: Option<Duration>,
    /// Detail in which all controllers log their writes, if not that of their builders.
    change_log: Option<ChangeLog>,
    status: SharedStatus,
    health: Bind,
    metrics: Bind,
    debug: bool,
    /// Time that work is given to end after a request to stop.
    drain: Duration,
    stop: CancellationToken,
    /// Time of the request to stop.
    stopped: Mutex<Option<Instant>>,
    first_error: Arc<FirstError>,
    addresses: watch::Sender<Addresses>,
}

/// The first failure of a part that the operator needs; the error stops everything.
#[derive(Debug)]
struct FirstError {
    error: Mutex<Option<Error>>,
    stop: CancellationToken,
}

impl FirstError {
    /// Keeps the error, unless an earlier error is kept, and stops the operator.
    fn set(&self, error: Error) {
        let mut first = self.error.lock();
        if first.is_none() {
            *first = Some(error);
        }
        // Released before the cancellation: a woken task may report a failure here at once.
        drop(first);
        self.stop.cancel();
    }
}

/// Starts the operator in a separate task.
pub(super) fn start(mut manager: Manager) -> Running {
    let shadow = manager.shadow;
    if shadow.is_some() {
        manager.election = None;
        manager.definitions.clear();
        manager.runnables.clear();
    }
    let stop = CancellationToken::new();
    let (health, metrics, debug) = (manager.health, manager.metrics, manager.debug);
    let (drain, workers, with_signals) = (manager.drain, manager.workers, manager.signals);
    let change_log = manager.change_log;
    let force_install = manager.force_install;
    let (status, definitions, problem) = set_up(manager, &stop);
    let (addresses, seen) = watch::channel(Addresses::default());
    let operator = Operator {
        client: status.client.clone(),
        clock: status.client.environment().clock.clone(),
        definitions,
        force_install,
        workers,
        change_log,
        shadow,
        status: Arc::clone(&status),
        health,
        metrics,
        debug,
        drain,
        stop: stop.clone(),
        stopped: Mutex::default(),
        first_error: Arc::new(FirstError { error: Mutex::default(), stop: stop.clone() }),
        addresses,
    };
    let now = CancellationToken::new();
    let signals = with_signals.then(|| signals::listen(stop.clone(), now.clone()));
    let task = tokio::spawn(async move {
        // Returned by the task, so that `start` cannot fail and `join` returns the error.
        if let Some(problem) = problem {
            return Err(problem);
        }
        // Dropped with the main task, so that no listener for signals outlives the operator.
        let mut listening = JoinSet::new();
        if let Some(signals) = signals {
            listening.spawn(signals);
        }
        tokio::select! {
            biased;
            // The second signal drops the stages at any point.
            () = now.cancelled() => Ok(Exit::Cut),
            outcome = operator.run() => outcome,
        }
    });
    let client = status.client.clone();
    let task = AbortOnDropHandle::new(task);
    Running { task, _memory: None, stop, status, client, addresses: seen }
}

impl Operator {
    /// Runs all stages, from the servers inwards; returns the outcome.
    async fn run(self) -> Result<Exit, Error> {
        let mut servers = JoinSet::new();
        self.open_servers(&mut servers).await?;
        let outcome = tokio::select! {
            biased;
            outcome = self.serve() => outcome,
            // Runs beside the stages, so that the drain time counts from the request to stop, not
            // from the moment at which a stage notices the request.
            never = self.record_stop_time() => match never {},
        };
        servers.shutdown().await;
        match &outcome {
            Ok(Exit::Drained) => info!("stopped; all work was ended"),
            Ok(Exit::Cut) => warn!("stopped; some work was cut off"),
            Err(error) => error!(error = ?error, "stopped by an error"),
        }
        outcome
    }

    /// Records the time of the request to stop; never ends.
    async fn record_stop_time(&self) -> std::convert::Infallible {
        self.stop.cancelled().await;
        *self.stopped.lock() = Some(self.clock.now());
        std::future::pending().await
    }

    /// Returns the rest of the drain time.
    fn time_left(&self) -> Duration {
        let stopped = *self.stopped.lock();
        let gone = stopped.map_or(Duration::ZERO, |at| self.clock.now().duration_since(at));
        self.drain.saturating_add(GRACE).saturating_sub(gone).max(GRACE)
    }

    /// Runs the stages between the first server and the last.
    async fn serve(&self) -> Result<Exit, Error> {
        // A separate token, not the operator's: these runnables stop after the caches.
        let early = self.start_runnables(
            RunnableStage::BeforeCaches,
            &self.client,
            CancellationToken::new(),
        );
        self.until_stop(early.started()).await;
        let outcome = self.with_definitions().await;
        // The stages may have ended by an error, without a request to stop.
        self.stop.cancel();
        let ended = early.shutdown(self.time_left()).await;
        let first_error = self.first_error.error.lock().take();
        // The first failure is the cause; the outcome of the stages only follows from that failure.
        match first_error {
            Some(error) => Err(error),
            None => outcome.map(|all| exit(all && ended)),
        }
    }

    /// Binds the addresses of probes and metrics, and serves them: by a single server if the
    /// addresses are equal.
    async fn open_servers(&self, servers: &mut JoinSet<()>) -> Result<(), Error> {
        let registry = self.client.environment().metrics.clone();
        let endpoints = |probes, metrics, debug| Endpoints {
            status: self.status.clone(),
            clock: self.clock.clone(),
            probes,
            metrics,
            debug,
        };
        let mut addresses = Addresses { is_known: true, ..Addresses::default() };
        let (health, metrics) = (self.health.addr(), self.metrics.addr());
        // Port 0 stands for a separate port in each of the two settings.
        let shared = health.zip(metrics).is_some_and(|(a, b)| is_one(a, b) && a.port() != 0);
        // Names of objects and texts of errors must not be readable from the network.
        let debug = self.debug || metrics.is_some_and(|at| at.ip().is_loopback());
        if let Some(addr) = health {
            let listener = bind(addr, "probes").await?;
            addresses.health = listener.local_addr().ok();
            let metrics = shared.then(|| registry.clone());
            servers.spawn(serve(listener, endpoints(true, metrics, shared && debug)));
        }
        match metrics {
            Some(_) if shared => addresses.metrics = addresses.health,
            Some(addr) => {
                let listener = bind(addr, "metrics").await?;
                addresses.metrics = listener.local_addr().ok();
                servers.spawn(serve(listener, endpoints(false, Some(registry), debug)));
            }
            None => {}
        }
        addresses.debug = addresses.metrics.filter(|_| debug);
        let (health, metrics) = (addresses.health.map(display), addresses.metrics.map(display));
        info!(target: "windlass_runtime::manager::http", health, metrics, "serving");
        self.addresses.send_replace(addresses);
        Ok(())
    }

    /// Starts the runnables of a stage.
    fn start_runnables(
        &self,
        stage: RunnableStage,
        client: &Client,
        stop: CancellationToken,
    ) -> RunnableGroup {
        let mut group = RunnableGroup::new(stop, self.clock.clone());
        for runnable in self.status.runnables.iter().filter(|one| one.stage() == stage) {
            let place = (client.clone(), self.status.informers.clone());
            let (status, first_error) = (Arc::clone(&self.status), Arc::clone(&self.first_error));
            let ready = async move {
                // The caches that a runnable reads are not known: all must be filled.
                if stage != RunnableStage::BeforeCaches {
                    status.synced().await;
                }
            };
            let names = Arc::clone(&self.status.names);
            group.start(Arc::clone(runnable), place, names, ready, move |error| {
                first_error.set(error)
            });
        }
        group
    }

    /// Runs the stages from the installation of definitions to the end of the last term; returns
    /// true when all work ended without being cut off.
    async fn with_definitions(&self) -> Result<bool, Error> {
        let definitions = self.definitions()?;
        // Cancelled once the kinds are there; the webhook server waits for it, too.
        let installed = self.status.names.installed.clone();
        match self.until_stop(self.check_or_install(&definitions)).await {
            None => return Ok(true),
            Some(are_there) => {
                if are_there? {
                    installed.cancel();
                }
            }
        }
        // Before controllers ask for their caches.
        self.status.registries().iter().for_each(|(_, one)| one.mark_requested());
        let drivers_at_work = Arc::default();
        for controller in &self.status.controllers {
            controller.share_drivers(&drivers_at_work);
            if let Some(workers) = self.workers {
                controller.limit_workers(workers);
            }
            if let Some(detail) = self.change_log {
                controller.log_changes(detail);
            }
            if let Some(settle_time) = self.shadow {
                controller.follow(settle_time);
            }
            controller.attach(&self.status.informers)?;
        }
        *self.status.starting.lock() = None;
        // After the controllers' caches were added, and before the first request of any.
        if !installed.is_cancelled() {
            self.status.informers.expect(&self.status.installs);
        }
        let stop = CancellationToken::new();
        // Not the operator's token: caches run until the controllers have drained.
        let mut caches = self.start_caches(&stop, &installed);
        let others =
            self.start_runnables(RunnableStage::Always, &self.client, CancellationToken::new());
        let outcome = self.work(&definitions, &installed).await;
        // Readiness falls also when the end is an error.
        self.stop.cancel();
        let ended = others.shutdown(self.time_left()).await;
        stop.cancel();
        // Bounded: a cache that does not end must not hold up the exit.
        self.clock.timeout(GRACE, async { while caches.join_next().await.is_some() {} }).await;
        outcome.map(|all| all && ended)
    }

    /// Fills the caches of all clusters, and keeps them up to date until `stop`.
    fn start_caches(&self, stop: &CancellationToken, installed: &CancellationToken) -> JoinSet<()> {
        let mut caches = JoinSet::new();
        for (place, informers) in self.status.registries() {
            let (informers, stop, clock) = (informers.clone(), stop.clone(), self.clock.clone());
            let (installed, first_error) = (installed.clone(), Arc::clone(&self.first_error));
            let is_own = place.is_none();
            caches.spawn(async move {
                // Without the head start, kinds that this process is about to install would be
                // found absent.
                if is_own {
                    tokio::select! {
                        biased;
                        // Without this branch an early stop would wait for the whole head start.
                        () = stop.cancelled() => return,
                        _ = clock.timeout(HEAD_START, installed.cancelled()) => {}
                    }
                }
                informers.run(stop.clone()).await;
                if !stop.is_cancelled() {
                    first_error.set(ended("the caches"));
                }
            });
        }
        caches
    }

    /// Returns the outcome of `work`, or `None` when the operator was asked to stop first.
    async fn until_stop<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            // `biased`, the stop first: `work` is not polled after the request to stop.
            () = self.stop.cancelled() => None,
            outcome = work => Some(outcome),
        }
    }

    /// Runs the stages from filled caches to the end of the last term.
    async fn work(
        &self,
        definitions: &[CustomResourceDefinition],
        installed: &CancellationToken,
    ) -> Result<bool, Error> {
        let Some(elector) = &self.status.elector else {
            if self.until_stop(self.wait_for_requested_caches()).await.is_none() {
                return Ok(true);
            }
            return Ok(self.run_controllers(self.client.clone(), None).await);
        };
        // A replica that has definitions to install must lead first: a kind that is not served
        // fills no cache.
        if installed.is_cancelled() && self.until_stop(self.wait_before_campaign()).await.is_none()
        {
            return Ok(true);
        }
        while let Some(term) = elector.campaign(&self.stop).await {
            let all_ended = self.serve_term(term, definitions, installed).await;
            if self.stop.is_cancelled() {
                return Ok(all_ended);
            }
        }
        Ok(true)
    }

    /// Runs the stages from the won lease to its release.
    async fn serve_term(
        &self,
        term: Term,
        definitions: &[CustomResourceDefinition],
        installed: &CancellationToken,
    ) -> bool {
        // For the liveness probe, which reads the gate.
        *self.status.gate.lock() = Some(term.gate());
        let gate: Arc<dyn WriteGate> = Arc::new(term.gate());
        self.status.clusters.iter().for_each(|cluster| cluster.fence(Some(Arc::clone(&gate))));
        let client = self.client.gated(gate);
        let (lost, requested) = (term.lost(), term.handover_requested());
        // `biased`, the end of leadership first: a preparation that ends in the same moment must
        // not start the controllers.
        let prepared = tokio::select! {
            biased;
            () = lost.cancelled() => None,
            () = requested.cancelled() => None,
            prepared = self.until_stop(self.prepare(&client, definitions, installed)) => prepared,
        };
        let all_ended = match prepared {
            None => true,
            Some(Ok(())) => self.run_controllers(client, Some((lost, requested))).await,
            Some(Err(error)) if error.kind() == ErrorKind::NotLeader => {
                debug!(error = ?error, "the lease was lost before anything was done");
                true
            }
            Some(Err(error)) => {
                self.first_error.set(error);
                true
            }
        };
        // Also after a failure: the release only requires that no work runs any more.
        term.end(all_ended).await;
        // Other clusters refuse every write until the next term.
        self.status.clusters.iter().for_each(|cluster| cluster.fence(None));
        *self.status.gate.lock() = None;
        all_ended
    }

    /// Brings the definitions up to date under the lease, before anything else that a leader does.
    async fn prepare(
        &self,
        client: &Client,
        definitions: &[CustomResourceDefinition],
        installed: &CancellationToken,
    ) -> Result<(), Error> {
        self.install(client, definitions).await?;
        self.status.informers.expect(&BTreeSet::new());
        installed.cancel();
        self.wait_for_requested_caches().await;
        Ok(())
    }

    /// Waits for the caches before the campaign. The wait for those that the program asked for has
    /// no limit, since without them no replica works; the wait for the others ends after
    /// [`CACHE_SYNC_TIMEOUT`], since another replica may have them.
    async fn wait_before_campaign(&self) {
        self.status.others_synced().await;
        if self.clock.timeout(CACHE_SYNC_TIMEOUT, self.status.synced()).await.is_none() {
            let registries = self.status.registries();
            let missing: Vec<_> = registries.iter().flat_map(|(_, one)| one.missing()).collect();
            warn!(?missing, "the campaign for the lease begins although not all caches are filled");
        }
    }

    /// Waits for the caches that no controller waits for: the caches that the program asked for. A
    /// kind that was found absent counts as filled, and may have been looked for before its
    /// definition was installed: such kinds are looked for again.
    async fn wait_for_requested_caches(&self) {
        let status = &self.status;
        status.others_synced().await;
        let served = async {
            let mut pause = FIRST_POLL;
            while !status.informers.seek(&status.installs).is_empty() {
                self.clock.sleep(pause).await;
                pause = (pause * 2).min(LONGEST_POLL);
            }
        };
        self.clock.timeout(SERVED_WITHIN, served).await;
        match status.absent().as_slice() {
            [] => {}
            absent => warn!(
                ?absent,
                "caches are filled, but for kinds that are not served: controllers begin without their \
                 objects"
            ),
        }
    }
}

fn exit(all_ended: bool) -> Exit {
    if all_ended { Exit::Drained } else { Exit::Cut }
}

/// Returns the error about a part that ended unexpectedly.
fn ended(part: &str) -> Error {
    let text = format!("{part} ended without having been asked to; please report it with the log");
    Error::new(ErrorKind::Other, text)
}
