//! Background sources beside a controller's workers: polls, timers, resyncs, triggers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::enqueue::{Enqueuer, Objects};
use crate::environment::Environment;
use crate::panics::{caught, panic_text};

/// Pause before a pump that panicked is started again.
const PAUSE: Duration = Duration::from_secs(10);

/// Environment of a pump during one run of its controller.
#[derive(Clone)]
pub(crate) struct PumpRun {
    pub(crate) controller: Arc<str>,
    pub(crate) feed: Enqueuer,
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) environment: Environment,
}

/// A boxed future of a pump.
pub(crate) type Pumping = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A background source: enqueues objects on its own while its controller runs.
pub(crate) trait BackgroundSource: Send + Sync + 'static {
    /// Does the work that is needed before the first reconcile; takes a bounded time.
    fn prepare(self: Arc<Self>, run: PumpRun) -> Pumping {
        let _ = run;
        Box::pin(std::future::ready(()))
    }

    /// Works until it is dropped.
    fn run(self: Arc<Self>, run: PumpRun) -> Pumping;
}

/// Prepares the pumps, and starts them unless `stop` came first. They end when the returned set is
/// dropped.
pub(crate) async fn start(
    pumps: &[Arc<dyn BackgroundSource>],
    run: &PumpRun,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut preparing = JoinSet::new();
    for pump in pumps {
        preparing.spawn(Arc::clone(pump).prepare(run.clone()));
    }
    let prepared = async {
        while let Some(ended) = preparing.join_next().await {
            // A panic of one pump must not keep the controller from starting.
            if let Err(error) = ended {
                tracing::error!(controller = %run.controller, %error, "a source was not prepared");
            }
        }
    };
    // Stop comes first: a run that was stopped while it prepared starts no pump.
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

/// Runs a pump, and starts it again after a panic: it calls user code that compares and drops
/// values.
async fn keep_going(pump: Arc<dyn BackgroundSource>, run: PumpRun) {
    while let Err(panic) = caught(Arc::clone(&pump).run(run.clone())).await {
        let controller = &run.controller;
        tracing::error!(%controller, "a source panicked and starts again: {}", panic_text(&*panic));
        run.environment.clock.sleep(PAUSE).await;
    }
}
