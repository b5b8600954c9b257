//! The life of an operator, from its first server to its last goodbye.

use std::net::SocketAddr;
use std::process::{ExitCode, Termination};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::field::display;
use tracing::{error, info, warn};

use super::health::{Readiness, SharedVitals, Vitals};
use super::http::{Endpoints, bind, serve};
use super::{Bind, Manager, install, signals};
use crate::client::Client;
use crate::clock::Clock;
use crate::controller::{ControllerRun, ControllerState, ErasedController};
use crate::error::{Error, ErrorKind};
use crate::events::{Recorder, Warning};
use crate::informer::InformerRegistry;
use crate::leader::{Elector, LOST, Leadership, Term};

/// Beyond the drain time that a controller was given, for its own bookkeeping.
const GRACE: Duration = Duration::from_secs(1);

/// How an operator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Every reconcile ended by itself. Exit code 0.
    Drained,
    /// Some reconcile was cut off: the drain time ran out, or a second signal came. Exit code 2.
    Cut,
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        match self {
            Self::Drained => ExitCode::SUCCESS,
            Self::Cut => ExitCode::from(2),
        }
    }
}

/// An operator that runs in the background; dropping it stops everything at once, as a crash would.
#[derive(Debug)]
pub struct Running {
    task: AbortOnDropHandle<Result<Exit, Error>>,
    stop: CancellationToken,
    vitals: SharedVitals,
    controllers: Vec<Arc<dyn ErasedController>>,
    client: Client,
    addresses: watch::Receiver<Addresses>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Addresses {
    health: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
}

impl Running {
    /// Asks it to stop, as the first signal would; returns at once.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// Those of [`Manager::run`].
    pub async fn join(self) -> Result<Exit, Error> {
        self.task.await.unwrap_or_else(|panic| {
            let text = "the operator's main task panicked; please report it with the log";
            Err(Error::new(ErrorKind::Other, text).because(panic))
        })
    }

    /// Is it still running?
    pub fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Its caches.
    pub fn informers(&self) -> &InformerRegistry {
        &self.vitals.informers
    }

    /// Its client, without the gate of leadership.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How its controllers are doing, by name.
    pub fn states(&self) -> Vec<(String, ControllerState)> {
        let state = |c: &Arc<dyn ErasedController>| (c.name().to_owned(), c.state());
        self.controllers.iter().map(state).collect()
    }

    /// Is it ready, and if not, what is missing?
    pub fn readiness(&self) -> Readiness {
        self.vitals.ready()
    }

    /// Where its election stands; `None` without one.
    pub fn leadership(&self) -> Option<Leadership> {
        self.vitals.leadership()
    }

    /// Where its probes are served, once they are; `None` when they never will be.
    pub async fn health_addr(&self) -> Option<SocketAddr> {
        let mut addresses = self.addresses.clone();
        addresses.wait_for(|at| at.health.is_some()).await.ok().and_then(|at| at.health)
    }

    /// Where its metrics are served, once they are; `None` when they never will be.
    pub async fn metrics_addr(&self) -> Option<SocketAddr> {
        let mut addresses = self.addresses.clone();
        addresses.wait_for(|at| at.metrics.is_some()).await.ok().and_then(|at| at.metrics)
    }
}

/// Everything that the main task owns.
struct Operator {
    name: String,
    client: Client,
    clock: Clock,
    controllers: Vec<Arc<dyn ErasedController>>,
    definitions: Vec<Result<CustomResourceDefinition, Error>>,
    elector: Option<Elector>,
    vitals: SharedVitals,
    health: Bind,
    metrics: Bind,
    drain: Duration,
    stop: CancellationToken,
    addresses: watch::Sender<Addresses>,
}

pub(super) fn start(manager: Manager) -> Running {
    let (name, health, metrics) =
        (manager.display_name().to_owned(), manager.health, manager.metrics);
    let drain = manager.drain;
    let Manager { client, controllers, definitions, election, namespaces, caches, .. } = manager;
    let (stop, now) = (CancellationToken::new(), CancellationToken::new());
    let informers = InformerRegistry::new(client.clone(), namespaces);
    let mut caches = caches.into_iter();
    let cached = caches.try_for_each(|(info, options)| informers.set_options(info, options));
    let elector = election.map(|settings| Elector::new(settings, &client)).transpose();
    let (elector, problem) = match cached.and(elector) {
        Ok(elector) => (elector, None),
        Err(problem) => (None, Some(problem)),
    };
    let vitals = Arc::new(Vitals {
        stop: stop.clone(),
        informers,
        elector: elector.clone(),
        starting: Mutex::new(Some("starting".to_owned())),
        gate: Mutex::new(None),
    });
    let (addresses, seen) = watch::channel(Addresses::default());
    let operator = Operator {
        name,
        clock: client.seams().clock.clone(),
        client: client.clone(),
        controllers: controllers.clone(),
        definitions,
        elector,
        vitals: vitals.clone(),
        health,
        metrics,
        drain,
        stop: stop.clone(),
        addresses,
    };
    let signals = manager.signals.then(|| signals::listen(stop.clone(), now.clone()));
    let task = tokio::spawn(async move {
        if let Some(problem) = problem {
            return Err(problem);
        }
        let mut listening = JoinSet::new();
        if let Some(signals) = signals {
            listening.spawn(signals);
        }
        tokio::select! {
            biased;
            () = now.cancelled() => Ok(Exit::Cut),
            outcome = operator.live() => outcome,
        }
    });
    let task = AbortOnDropHandle::new(task);
    Running { task, stop, vitals, controllers, client, addresses: seen }
}

impl Operator {
    async fn live(self) -> Result<Exit, Error> {
        let mut servers = JoinSet::new();
        self.open_servers(&mut servers).await?;
        match self.until_stop(self.install()).await {
            None => return Ok(Exit::Drained),
            Some(outcome) => outcome?,
        }
        for controller in &self.controllers {
            controller.attach(&self.vitals.informers)?;
        }
        *self.vitals.starting.lock() = None;
        let caches_stop = CancellationToken::new();
        let mut caches = JoinSet::new();
        caches.spawn({
            let (informers, stop) = (self.vitals.informers.clone(), caches_stop.clone());
            async move { informers.run(stop).await }
        });
        let outcome = self.work(&mut caches).await;
        // Readiness falls also when the end is an error.
        self.stop.cancel();
        caches_stop.cancel();
        self.clock.within(GRACE, async { while caches.join_next().await.is_some() {} }).await;
        servers.shutdown().await;
        match &outcome {
            Ok(Exit::Drained) => info!("stopped; all work was ended"),
            Ok(Exit::Cut) => warn!("stopped; some work was cut off"),
            Err(error) => error!(error = ?error, "stopped by an error"),
        }
        outcome
    }

    async fn open_servers(&self, servers: &mut JoinSet<()>) -> Result<(), Error> {
        let registry = self.client.seams().metrics.clone();
        let endpoints = |probes, metrics| Endpoints {
            vitals: self.vitals.clone(),
            clock: self.clock.clone(),
            probes,
            metrics,
        };
        let mut addresses = Addresses::default();
        let (health, metrics) = (self.health.addr(), self.metrics.addr());
        let shared = health.is_some() && health == metrics && health.is_some_and(|a| a.port() != 0);
        if let Some(addr) = health {
            let listener = bind(addr, "probes").await?;
            addresses.health = listener.local_addr().ok();
            let metrics = shared.then(|| registry.clone());
            servers.spawn(serve(listener, endpoints(true, metrics)));
        }
        match metrics {
            Some(_) if shared => addresses.metrics = addresses.health,
            Some(addr) => {
                let listener = bind(addr, "metrics").await?;
                addresses.metrics = listener.local_addr().ok();
                servers.spawn(serve(listener, endpoints(false, Some(registry))));
            }
            None => {}
        }
        let (health, metrics) = (addresses.health.map(display), addresses.metrics.map(display));
        info!(health, metrics, "serving");
        self.addresses.send_replace(addresses);
        Ok(())
    }

    async fn install(&self) -> Result<(), Error> {
        if self.definitions.is_empty() {
            return Ok(());
        }
        let waiting = "installing custom resource definitions";
        *self.vitals.starting.lock() = Some(waiting.to_owned());
        let definitions = self
            .definitions
            .iter()
            .map(|definition| match definition {
                Ok(definition) => Ok(definition.clone()),
                Err(error) => Err(Error::new(error.kind(), error.to_string())),
            })
            .collect::<Result<Vec<_>, Error>>()?;
        install::install_all(&self.client, &definitions).await
    }

    /// The outcome of `work`, or `None` when it was asked to stop first.
    async fn until_stop<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            outcome = work => Some(outcome),
        }
    }

    /// From filling the caches to the end of the last term.
    async fn work(&self, caches: &mut JoinSet<()>) -> Result<Exit, Error> {
        let synced = async {
            tokio::select! {
                biased;
                _ = caches.join_next() => Err(ended("the caches")),
                () = self.vitals.informers.synced() => Ok(()),
            }
        };
        match self.until_stop(synced).await {
            None => return Ok(Exit::Drained),
            Some(outcome) => outcome?,
        }
        info!("caches are filled");
        let Some(elector) = &self.elector else {
            let all_ended = self.run_controllers(self.client.clone(), None).await?;
            return Ok(exit(all_ended));
        };
        while let Some(term) = elector.campaign(&self.stop).await {
            let all_ended = self.serve_term(term).await?;
            if self.stop.is_cancelled() {
                return Ok(exit(all_ended));
            }
        }
        Ok(Exit::Drained)
    }

    async fn serve_term(&self, term: Term) -> Result<bool, Error> {
        *self.vitals.gate.lock() = Some(term.gate());
        let client = self.client.gated(Arc::new(term.gate()));
        let ends = Some((term.lost(), term.asked()));
        let outcome = self.run_controllers(client, ends).await;
        term.end(matches!(outcome, Ok(true))).await;
        *self.vitals.gate.lock() = None;
        outcome
    }

    /// Runs the controllers until the operator stops, or leadership is lost or asked for; true when every
    /// reconcile ended by itself.
    async fn run_controllers(
        &self,
        client: Client,
        ends: Option<(CancellationToken, CancellationToken)>,
    ) -> Result<bool, Error> {
        let stop = self.stop.child_token();
        let mut reporting = self.report_invalid(&client, stop.clone());
        let mut running = JoinSet::new();
        for controller in &self.controllers {
            let run = ControllerRun {
                client: client.clone(),
                informers: self.vitals.informers.clone(),
                stop: stop.clone(),
                drain: self.drain,
            };
            let controller = controller.clone();
            running.spawn(async move { (controller.name().to_owned(), controller.run(run).await) });
        }
        let (lost, asked) = ends.unwrap_or_default();
        let outcome = tokio::select! {
            biased;
            () = stop.cancelled() => Ok(self.drain + GRACE),
            () = lost.cancelled() => Ok(LOST),
            () = asked.cancelled() => Ok(self.drain + GRACE),
            Some(early) = running.join_next() => Err(match early {
                Ok((name, _)) => ended(&format!("controller {name:?}")),
                Err(panic) => ended("a controller").because(panic),
            }),
        };
        stop.cancel();
        let limit = match &outcome {
            Ok(limit) => *limit,
            Err(_) => self.drain + GRACE,
        };
        let all_ended = self.drained(&mut running, limit).await;
        self.vitals.informers.report_invalid(None);
        self.clock.within(GRACE, reporting.join_next()).await;
        outcome.map(|_| all_ended)
    }

    /// Cached objects that do not decode get an Event each, by `client`, until `stop`.
    fn report_invalid(&self, client: &Client, stop: CancellationToken) -> JoinSet<()> {
        let (recorder, writer) = Recorder::new(client.clone(), &self.name);
        let mut writing = JoinSet::new();
        writing.spawn(writer.run(stop));
        self.vitals.informers.report_invalid(Some(Arc::new(move |invalid| {
            let note = format!("{invalid}. It is skipped until it changes.");
            recorder.event(&invalid.object, Warning, "Undecodable", note);
        })));
        writing
    }

    async fn drained(&self, running: &mut JoinSet<(String, bool)>, limit: Duration) -> bool {
        let mut all_ended = true;
        let drain = async {
            while let Some(ended) = running.join_next().await {
                all_ended &= matches!(ended, Ok((_, true)));
            }
        };
        if self.clock.within(limit, drain).await.is_none() {
            warn!(controllers = running.len(), "reconciles did not end in time and are cut off");
            running.shutdown().await;
            return false;
        }
        all_ended
    }
}

fn exit(all_ended: bool) -> Exit {
    if all_ended { Exit::Drained } else { Exit::Cut }
}

fn ended(what: &str) -> Error {
    let text = format!("{what} ended without having been asked to; please report it with the log");
    Error::new(ErrorKind::Other, text)
}
