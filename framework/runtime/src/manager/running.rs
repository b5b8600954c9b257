//! Handle of an operator that runs in the background.
//!
//! All methods but [`join`](Running::join) read shared state and never wait for the operator's
//! task, so a stuck operator can still be inspected.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Exit;
use super::endpoints::{SharedStatus, debug};
use super::probe::ProbeStatus;
use crate::controller::{BusyReport, ControllerState, ErasedController};
use crate::leader::Leadership;
use windlass_cache::informer::InformerRegistry;
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};

/// Time between two readings of the checks by `wait_ready`.
const READY_PERIOD: Duration = Duration::from_millis(100);

/// An operator that runs in the background; dropping this value stops everything at once, as a
/// crash would.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::{client::Client, manager::Manager};
/// # async fn example(client: Client) -> Result<(), windlass::Error> {
/// let operator = Manager::new(client).without_signals().start();
/// if let Some(addr) = operator.health_addr().await {
///     println!("probes at {addr}");
/// }
/// operator.wait_ready(std::time::Duration::from_secs(60)).await?;
/// operator.stop();
/// operator.join().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Running {
    /// The operator's main task; dropping the handle aborts it.
    pub(super) task: AbortOnDropHandle<Result<Exit, Error>>,
    /// Watches the memory, if there is a budget.
    pub(super) _memory: Option<AbortOnDropHandle<()>>,
    /// The request to stop, as made by the first signal.
    pub(super) stop: CancellationToken,
    /// State that the probes read.
    pub(super) status: SharedStatus,
    /// Client of the operator's own cluster, without a gate.
    pub(super) client: Client,
    /// Addresses of the servers, once they are known.
    pub(super) addresses: watch::Receiver<Addresses>,
}

/// Addresses of an operator's servers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Addresses {
    /// Address of `/healthz` and `/readyz`.
    pub(super) health: Option<SocketAddr>,
    /// Address of `/metrics`.
    pub(super) metrics: Option<SocketAddr>,
    /// Address of the debug page.
    pub(super) debug: Option<SocketAddr>,
    /// Whether all servers that there will be are open.
    pub(super) is_known: bool,
}

impl Running {
    /// Asks the operator to stop, as the first signal would; returns at once.
    ///
    /// Further calls have no effect; unlike a second signal they do not end the wait. Await
    /// [`join`](Self::join) for the end.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the operator has ended.
    ///
    /// # Errors
    /// Those of [`Manager::run`](super::Manager::run).
    /// # Cancel safety
    /// Dropping the future aborts the operator's main task: no work is drained, and a lease is left
    /// to expire.
    pub async fn join(self) -> Result<Exit, Error> {
        self.task.await.unwrap_or_else(|panic| {
            let text = "the operator's main task panicked; please report it with the log";
            Err(Error::new(ErrorKind::Other, text).because(panic))
        })
    }

    /// Whether the operator is still running.
    ///
    /// False as soon as the main task has ended, with or without an error.
    pub fn is_running(&self) -> bool {
        !self.task.is_finished()
    }

    /// Returns the recording, in JSON lines as `/debug/recording` serves them; `None` if there is
    /// none.
    ///
    /// [`Manager::recording`](super::Manager::recording) has the contents and their bounds.
    pub fn recording(&self) -> Option<String> {
        let recorder = self.status.recorder.as_ref()?;
        Some(String::from_utf8_lossy(&recorder.export()).into_owned())
    }

    /// Returns the operator's caches.
    ///
    /// They run until the operator has ended, and then keep their last state.
    pub fn informers(&self) -> &InformerRegistry {
        &self.status.informers
    }

    /// Returns the operator's controllers, for tests.
    #[doc(hidden)]
    pub fn controllers(&self) -> Vec<Arc<dyn ErasedController>> {
        self.status.controllers.clone()
    }

    /// Returns the caches of the operator's own cluster and of all others, each with a client.
    #[doc(hidden)]
    pub fn caches(&self) -> Vec<(&Client, &InformerRegistry)> {
        let others = self.status.clusters.iter().map(|one| (one.client(), one.informers()));
        std::iter::once((&self.client, self.informers())).chain(others).collect()
    }

    /// Returns the operator's client, without the gate of leadership.
    ///
    /// The client's writes are not fenced: a write may run beside those of another leader.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the state of each controller, by name.
    pub fn states(&self) -> Vec<(String, ControllerState)> {
        let state = |c: &Arc<dyn ErasedController>| (c.name().to_owned(), c.state());
        self.status.controllers.iter().map(state).collect()
    }

    /// Returns the reasons why the controllers do not come to rest, by name.
    ///
    /// For tests that wait until an operator has settled, and for the text of their failure.
    pub fn busy_report(&self) -> Vec<(String, BusyReport)> {
        let busy_report = |c: &Arc<dyn ErasedController>| (c.name().to_owned(), c.busy_report());
        self.status.controllers.iter().map(busy_report).collect()
    }

    /// Returns the checks of readiness, with the missing conditions.
    ///
    /// The same checks as `/readyz`.
    pub fn readiness(&self) -> ProbeStatus {
        self.status.ready()
    }

    /// Waits until all checks of [`readiness`](Self::readiness) hold, for at most `limit`.
    ///
    /// The checks are read ten times in a second.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] that names each check that failed at the end, and why;
    /// [`ErrorKind::Cancelled`] if the operator ended before: [`join`](Self::join) has the reason.
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn wait_ready(&self, limit: Duration) -> Result<(), Error> {
        let clock = &self.client.environment().clock;
        let ready = async {
            while !self.readiness().is_ready() {
                if !self.is_running() {
                    let text =
                        "the operator ended before it was ready; `Running::join` has the reason";
                    return Err(Error::new(ErrorKind::Cancelled, text));
                }
                clock.sleep(READY_PERIOD).await;
            }
            Ok(())
        };
        if let Some(outcome) = clock.timeout(limit, ready).await {
            return outcome;
        }
        let failed = self.readiness().checks.into_iter().filter(|check| !check.ok);
        let failed: Vec<_> =
            failed.map(|check| format!("{}: {}", check.name, check.detail)).collect();
        let text =
            format!("the operator was not ready after {limit:?}; missing: {}", failed.join("; "));
        Err(Error::new(ErrorKind::Timeout, text))
    }

    /// Returns the state of the election; `None` if there is none.
    pub fn leadership(&self) -> Option<Leadership> {
        self.status.leadership()
    }

    /// Returns the document of the debug page: queues, keys in work and in backoff, caches,
    /// leadership, last errors; each list with at most `limit` entries.
    ///
    /// Contains names of objects and texts of errors, but no content of objects.
    pub fn dump(&self, limit: usize) -> serde_json::Value {
        debug::dump(&self.status, limit)
    }

    /// Returns the address of the probes, once they are served; `None` when they never will be.
    ///
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn health_addr(&self) -> Option<SocketAddr> {
        self.opened().await.and_then(|at| at.health)
    }

    /// Returns the address of the metrics, once they are served; `None` when they never will be.
    ///
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn metrics_addr(&self) -> Option<SocketAddr> {
        self.opened().await.and_then(|at| at.metrics)
    }

    /// Returns the address of the debug page, once served; `None` when the page will never be
    /// served.
    ///
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn debug_addr(&self) -> Option<SocketAddr> {
        self.opened().await.and_then(|at| at.debug)
    }

    /// Waits for the addresses of the servers; `None` when the operator ended before.
    async fn opened(&self) -> Option<Addresses> {
        let mut addresses = self.addresses.clone();
        addresses.wait_for(|at| at.is_known).await.ok().map(|at| *at)
    }
}
