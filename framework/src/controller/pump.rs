//! What runs beside a controller's workers and wakes objects on its own: polls, timers, resyncs.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::feed::{Feed, Objects};
use crate::panics::{caught, panic_text};
use crate::seams::Seams;

/// A pump that panicked starts again after so long.
const PAUSE: Duration = Duration::from_secs(10);

/// What a pump works with, during one run of its controller.
#[derive(Clone)]
pub(super) struct PumpRun {
    pub(super) controller: Arc<str>,
    pub(super) feed: Feed,
    pub(super) objects: Arc<dyn Objects>,
    pub(super) seams: Seams,
}

/// A boxed future of a pump.
pub(super) type Pumping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wakes objects on its own while its controller runs.
pub(super) trait Pump: Send + Sync + 'static {
    /// What has to be done before the first reconcile; it takes a bounded time.
    fn prepare(self: Arc<Self>, run: PumpRun) -> Pumping {
        let _ = run;
        Box::pin(std::future::ready(()))
    }

    /// Works until it is dropped.
    fn run(self: Arc<Self>, run: PumpRun) -> Pumping;
}

/// Prepares the pumps, and starts them unless `stop` came first. They end when what it returns is
/// dropped.
pub(super) async fn start(
    pumps: &[Arc<dyn Pump>],
    run: &PumpRun,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut preparing = JoinSet::new();
    for pump in pumps {
        preparing.spawn(Arc::clone(pump).prepare(run.clone()));
    }
    let prepared = async {
        while let Some(ended) = preparing.join_next().await {
            if let Err(error) = ended {
                tracing::error!(controller = %run.controller, %error, "a source was not prepared");
            }
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => return JoinSet::new(),
        () = prepared => {}
    }
    let mut pumping = JoinSet::new();
    for pump in pumps {
        pumping.spawn(keep_going(Arc::clone(pump), run.clone()));
    }
    pumping
}

/// Runs a pump again when it panicked: what it compares and drops is code of users.
async fn keep_going(pump: Arc<dyn Pump>, run: PumpRun) {
    while let Err(panic) = caught(Arc::clone(&pump).run(run.clone())).await {
        let controller = &run.controller;
        tracing::error!(%controller, "a source panicked and starts again: {}", panic_text(&*panic));
        run.seams.clock.sleep(PAUSE).await;
    }
}
