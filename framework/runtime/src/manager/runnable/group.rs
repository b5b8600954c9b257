//! The running runnables of one stage.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error_span, warn};

use super::{OperatorInfo, RunContext, Runnable};
use windlass_cache::informer::InformerRegistry;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::error::Error;

/// Time that later stages wait for the start of awaited runnables.
const STARTED_WITHIN: Duration = Duration::from_secs(10);

/// The runnables of one stage, while running.
pub(in crate::manager) struct RunnableGroup {
    /// A task for each runnable of the stage; dropping the set aborts them.
    tasks: JoinSet<()>,
    /// Cancels all runnables of the stage.
    stop: CancellationToken,
    /// Clock of the limits.
    clock: Clock,
    /// Starts that later stages wait for.
    awaited: Vec<CancellationToken>,
}

impl RunnableGroup {
    /// Creates an empty group; `stop` cancels the runnables.
    pub(in crate::manager) fn new(stop: CancellationToken, clock: Clock) -> Self {
        Self { tasks: JoinSet::new(), stop, clock, awaited: Vec::new() }
    }

    /// Starts a runnable once `ready` is; `on_error` gets the error of an essential runnable.
    pub(in crate::manager) fn start(
        &mut self,
        runnable: Arc<Runnable>,
        (client, informers): (Client, InformerRegistry),
        names: Arc<OperatorInfo>,
        ready: impl Future<Output = ()> + Send + 'static,
        on_error: impl FnOnce(Error) + Send + 'static,
    ) {
        let (clock, stop) = (self.clock.clone(), self.stop.clone());
        let started = CancellationToken::new();
        if runnable.awaited {
            self.awaited.push(started.clone());
        }
        let cx = RunContext { client, informers, clock, stop: stop.clone(), started, names };
        let span = error_span!("runnable", runnable = runnable.name());
        let work = async move {
            // `biased`: a stop goes first, so that no work starts only to be cancelled.
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = ready => {}
            }
            if let Err(error) = runnable.run(&cx).await {
                on_error(error);
            }
        };
        self.tasks.spawn(work.instrument(span));
    }

    /// Waits until the awaited runnables have started, for at most [`STARTED_WITHIN`].
    pub(in crate::manager) async fn started(&self) {
        let all = async {
            for started in &self.awaited {
                started.cancelled().await;
            }
        };
        if self.clock.timeout(STARTED_WITHIN, all).await.is_none() {
            warn!("not all runnables before the caches have started; the caches fill without them");
        }
    }

    /// Cancels all runnables, and waits for at most `limit`; returns false if any was cut off.
    pub(in crate::manager) async fn shutdown(mut self, limit: Duration) -> bool {
        self.stop.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if self.clock.timeout(limit, all).await.is_some() {
            return true;
        }
        warn!(runnables = self.tasks.len(), "runnables did not end in time and are cut off");
        self.tasks.abort_all();
        // A runnable that blocks its thread cannot be dropped before its next yield: do not wait
        // for that.
        let gone = async { while self.tasks.join_next().await.is_some() {} };
        self.clock.timeout(Duration::from_millis(500), gone).await;
        false
    }
}
