//! Background sources beside a controller's workers: polls, timers, resyncs, triggers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::enqueue::{Enqueuer, ObjectKeys};
use windlass_core::environment::Environment;
use windlass_core::panics::{caught, panic_text};

/// Pause before a source that panicked is started again.
const PAUSE: Duration = Duration::from_secs(10);

/// Environment of a source during a run of the controller.
#[derive(Clone)]
pub(crate) struct BackgroundRun {
    pub(crate) controller: Arc<str>,
    pub(crate) enqueuer: Enqueuer,
    pub(crate) objects: Arc<dyn ObjectKeys>,
    pub(crate) environment: Environment,
}

/// A boxed future of a source.
pub(crate) type BackgroundFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A background source: enqueues objects on its own while the controller runs.
pub(crate) trait BackgroundSource: Send + Sync + 'static {
    /// Does the work that is needed before the first reconcile; takes a bounded time.
    fn prepare(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture {
        let _ = run;
        Box::pin(std::future::ready(()))
    }

    /// Works until dropped.
    fn run(self: Arc<Self>, run: BackgroundRun) -> BackgroundFuture;
}

/// Prepares the sources, and starts them unless `stop` is cancelled first. They end when the
/// returned set is dropped.
pub(crate) async fn start(
    sources: &[Arc<dyn BackgroundSource>],
    run: &BackgroundRun,
    stop: &CancellationToken,
) -> JoinSet<()> {
    let mut preparing = JoinSet::new();
    for source in sources {
        preparing.spawn(Arc::clone(source).prepare(run.clone()));
    }
    let prepared = async {
        while let Some(ended) = preparing.join_next().await {
            // A panic of a source must not keep the controller from starting.
            if let Err(error) = ended {
                tracing::error!(controller = %run.controller, %error, "a source was not prepared");
            }
        }
    };
    // Stop comes first: a run that was stopped during its preparation starts no source.
    tokio::select! {
        biased;
        () = stop.cancelled() => return JoinSet::new(),
        () = prepared => {}
    }
    let mut running = JoinSet::new();
    for source in sources {
        running.spawn(keep_going(Arc::clone(source), run.clone()));
    }
    running
}

/// Runs a source, and restarts the source after a panic: sources call user code that compares and
/// drops values.
async fn keep_going(source: Arc<dyn BackgroundSource>, run: BackgroundRun) {
    while let Err(panic) = caught(Arc::clone(&source).run(run.clone())).await {
        let controller = &run.controller;
        tracing::error!(%controller, "a source panicked and starts again: {}", panic_text(&*panic));
        run.environment.clock.sleep(PAUSE).await;
    }
}
