//! The workers of a run: their start, the replacement of a worker that died, their drain.

use std::time::Duration;

use tokio::task::JoinSet;

use super::Worker;

/// Time for dropped reconciles to end.
pub(crate) const ABORT_LIMIT: Duration = Duration::from_millis(500);

/// Logs a warning when panics cannot be caught.
pub(crate) fn warn_of_aborts(controller: &str, aborts: bool) {
    if aborts {
        tracing::warn!(
            controller,
            "built with panic=abort: a panic in one reconcile will end the process"
        );
    }
}

/// Runs workers until their stop, then waits for at most `drain`; false when reconciles were still
/// running then (they are dropped, and their keys are due again in the next run).
pub(crate) async fn run_workers(worker: &Worker, count: usize, drain: Duration) -> bool {
    let mut workers = JoinSet::new();
    for _ in 0..count {
        workers.spawn(worker.for_another_task().run());
    }
    loop {
        // Stop comes first: no worker is replaced while the controller stops.
        tokio::select! {
            biased;
            () = worker.stop.cancelled() => break,
            ended = workers.join_next() => match ended {
                // Panics of user code are caught in the step; this panic does not stop the
                // controller, either.
                Some(Err(error)) if error.is_panic() => {
                    tracing::error!(controller = %worker.controller, %error, "a worker died; starting another");
                    workers.spawn(worker.for_another_task().run());
                }
                Some(_) => {}
                None => worker.stop.cancelled().await,
            },
        }
    }
    let all_ended = async { while workers.join_next().await.is_some() {} };
    if worker.environment.clock.timeout(drain, all_ended).await.is_some() {
        return true;
    }
    tracing::warn!(
        controller = %worker.controller,
        reconciles = workers.len(),
        ?drain,
        "reconciles were still running at the end of the drain and are dropped"
    );
    workers.abort_all();
    // A reconcile that blocks its thread cannot be dropped before a yield: the wait for its end is
    // bounded.
    let gone = async { while workers.join_next().await.is_some() {} };
    worker.environment.clock.timeout(ABORT_LIMIT, gone).await;
    false
}
