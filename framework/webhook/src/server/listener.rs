//! The open connections: accepted up to a number, displaced when more come, ended at the stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use windlass_client::client::BoxIo;
use windlass_core::metrics::{GaugeSeries, names};
use windlass_runtime::manager::WebhookListener;

use super::connection::{Shared, serve};
use super::progress::Progress;

/// Pause after a connection that could not be accepted: out of file descriptors, most likely.
const BACKOFF: Duration = Duration::from_millis(100);

/// Serves connections until the stop, and those that are open to their end.
pub(super) async fn run(listener: Arc<dyn WebhookListener>, most: usize, shared: Arc<Shared>) {
    let mut connections = Connections::new(most, &shared);
    let stop = shared.stop.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(io) => {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    () = connections.make_room(&shared) => connections.add(io, &shared),
                }
                // Lets the connection read its request before a further one could displace it.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of the webhook server");
                shared.clock.sleep(BACKOFF).await;
            }
        }
    }
    drop(listener);
    while connections.tasks.join_next().await.is_some() {}
}

/// The open connections, oldest first.
struct Connections {
    tasks: JoinSet<()>,
    open: Vec<(AbortHandle, Arc<Progress>)>,
    most: usize,
    gauge: GaugeSeries,
}

impl Connections {
    fn new(most: usize, shared: &Shared) -> Self {
        let gauge = shared.metrics.gauge(&names::WEBHOOK_CONNECTIONS, &[]);
        Self { tasks: JoinSet::new(), open: Vec::new(), most, gauge }
    }

    /// Waits until one more connection may be open. Cancel safe.
    async fn make_room(&mut self, shared: &Shared) {
        loop {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|(task, _)| !task.is_finished());
            if self.open.len() < self.most {
                return;
            }
            let expendable = self.open.iter().enumerate();
            let expendable = expendable
                .filter_map(|(at, (_, progress))| Some((progress.expendable()?, at)))
                .min();
            match expendable {
                Some((_, at)) => {
                    self.open.remove(at).0.abort();
                    shared.closed("displaced");
                }
                // Requests have deadlines.
                None => drop(self.tasks.join_next().await),
            }
        }
    }

    fn add(&mut self, io: BoxIo, shared: &Arc<Shared>) {
        let progress = Arc::new(Progress::new(shared.clock.clone()));
        let counted = Counted::new(&self.gauge);
        let served = serve(io, Arc::clone(shared), Arc::clone(&progress));
        let task = self.tasks.spawn(async move {
            let _counted = counted;
            served.await;
        });
        self.open.push((task, progress));
    }
}

/// An open connection in the gauge, until it is dropped.
struct Counted(GaugeSeries);

impl Counted {
    fn new(gauge: &GaugeSeries) -> Self {
        gauge.add(1.0);
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add(-1.0);
    }
}
