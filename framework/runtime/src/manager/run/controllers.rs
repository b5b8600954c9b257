//! Controllers at work, from their start to the end of the drain.
//!
//! On any end of the work (a stop, a lost lease, a request for the lease, a controller that ends
//! unexpectedly), all controllers and runnables are cancelled at once, have their time, and are
//! dropped after that time. The result says whether everything ended without being cut off, which
//! decides about the release of the lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::super::runnable::RunnableStage;
use super::{GRACE, Operator, ended};
use crate::controller::ControllerRun;
use crate::events::{Recorder, Warning};
use crate::leader::LOST;
use windlass_client::client::Client;

/// Time beyond the drain time that controllers were given, for the Events of reconciles that ended
/// in the last moment (2 s at the most), and to drop the reconciles that did not end.
const EVENT_FLUSH_MARGIN: Duration = Duration::from_secs(3);

impl Operator {
    /// Runs the controllers until the operator stops, or leadership is lost or asked for; true when
    /// all reconciles and runnables ended without being cut off, and no controller panicked.
    pub(super) async fn run_controllers(
        &self,
        client: Client,
        ends: Option<(CancellationToken, CancellationToken)>,
    ) -> bool {
        // Ends with the operator, and can end with a term alone.
        let stop = self.stop.child_token();
        let mut reporting = self.report_invalid(&client, stop.clone());
        let runnables = self.start_runnables(RunnableStage::Leading, &client, stop.child_token());
        let mut running = JoinSet::new();
        for controller in &self.status.controllers {
            let run = ControllerRun {
                client: client.clone(),
                informers: self.status.informers.clone(),
                stop: stop.clone(),
                drain: self.drain,
            };
            let controller = controller.clone();
            running.spawn(async move { (controller.name().to_owned(), controller.run(run).await) });
        }
        let (lost, requested) = ends.unwrap_or_default();
        let mut early_was_clean = true;
        let (limit, more) = tokio::select! {
            biased;
            // `biased`: a stop goes first and keeps its drain time; after a lost lease the gate
            // refuses the writes in any case.
            () = stop.cancelled() => (self.drain, EVENT_FLUSH_MARGIN),
            // Nothing can be written any more, so there is no time for Events.
            () = lost.cancelled() => (LOST, Duration::ZERO),
            () = requested.cancelled() => (self.drain, EVENT_FLUSH_MARGIN),
            Some(early) = running.join_next() => {
                early_was_clean = matches!(early, Ok((_, true)));
                self.first_error.set(match early {
                    Ok((name, _)) => ended(&format!("controller {name:?}")),
                    Err(panic) => ended("a controller").because(panic),
                });
                (self.drain, EVENT_FLUSH_MARGIN)
            }
        };
        stop.cancel();
        // Side by side: both have the same deadline.
        let (drained, ended) = tokio::join!(
            self.drained(&mut running, limit.saturating_add(more)),
            runnables.shutdown(limit.saturating_add(more.min(GRACE)))
        );
        // The recorder's client belongs to this term.
        self.status.informers.report_invalid(None);
        self.clock.timeout(GRACE, reporting.join_next()).await;
        drained && ended && early_was_clean
    }

    /// Cached objects that do not decode get an Event each, by `client`, until `stop`.
    fn report_invalid(&self, client: &Client, stop: CancellationToken) -> JoinSet<()> {
        let (recorder, writer) = Recorder::new(client.clone(), &self.status.name);
        let mut writing = JoinSet::new();
        if !client.is_dry_run() {
            writing.spawn(writer.run(stop));
        }
        self.status.informers.report_invalid(Some(Arc::new(move |invalid| {
            let note = format!("{invalid}. It is skipped until it changes.");
            recorder.event(&invalid.object, Warning, "Undecodable", note);
        })));
        writing
    }

    /// Waits for all controllers, for at most `limit`; returns whether every reconcile ended
    /// without being dropped.
    async fn drained(&self, running: &mut JoinSet<(String, bool)>, limit: Duration) -> bool {
        let mut all_ended = true;
        let drain = async {
            while let Some(ended) = running.join_next().await {
                all_ended &= matches!(ended, Ok((_, true)));
            }
        };
        if self.clock.timeout(limit, drain).await.is_none() {
            warn!(controllers = running.len(), "reconciles did not end in time and are cut off");
            // Awaited, so that no reconcile of this term runs beside the next.
            running.shutdown().await;
            return false;
        }
        all_ended
    }
}
