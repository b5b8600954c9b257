//! The open connections: accepted up to a number, displaced when more come, ended at the stop.

// DESIGN.md, 290: A client that is slow loses its place before one that is used
// DESIGN.md, 298: A webhook server that stops answers once more on each connection

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use windlass_client::client::BoxIo;
use windlass_core::metrics::{GaugeSeries, names};
use windlass_runtime::manager::WebhookListener;

use super::connection::{ConnectionShared, serve};
use super::progress::{ConnectionProgress, EvictionOrder, SLOW};

/// Pause after a connection that could not be accepted: out of file descriptors, most likely.
const BACKOFF: Duration = Duration::from_millis(100);
/// Time between two looks for a connection that became slow.
const LOOK: Duration = Duration::from_millis(50);

/// Serves connections until the stop, and those that are open to their end. After the stop each
/// connection is used once more, for some time at most, and new ones are accepted meanwhile: an API
/// server learns that a connection is closed only after it may have sent the next request.
pub(super) async fn run(
    listener: Arc<dyn WebhookListener>,
    most: usize,
    shared: Arc<ConnectionShared>,
) {
    let mut connections = OpenConnections::new(most, &shared);
    let mut last = pin!(last_requests(&shared));
    let mut is_stopping = false;
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut last => break,
            () = shared.stop.cancelled(), if !is_stopping => {
                is_stopping = true;
                match connections.are_none() {
                    true => break,
                    false => continue,
                }
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(io) => {
                tokio::select! {
                    biased;
                    () = &mut last => break,
                    () = connections.make_room(&shared) => connections.add(io, &shared),
                }
                // Lets the connection read its request before a further one could displace it.
                tokio::task::yield_now().await;
            }
            // The fault of a single connection.
            Err(error) if is_of_the_client(&error) => {
                tracing::debug!(%error, "a connection ended before it was accepted");
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection of the webhook server");
                shared.clock.sleep(BACKOFF).await;
            }
        }
    }
    shared.closing.cancel();
    drop(listener);
    while connections.tasks.join_next().await.is_some() {}
}

/// Waits for the end of the time in which connections are used once more.
async fn last_requests(shared: &ConnectionShared) {
    shared.stop.cancelled().await;
    shared.clock.sleep(shared.last_requests).await;
}

fn is_of_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The open connections, oldest first.
struct OpenConnections {
    tasks: JoinSet<()>,
    open: Vec<(AbortHandle, Arc<ConnectionProgress>)>,
    most: usize,
    gauge: GaugeSeries,
}

impl OpenConnections {
    fn new(most: usize, shared: &ConnectionShared) -> Self {
        let gauge = shared.metrics.gauge(&names::WEBHOOK_CONNECTIONS, &[]);
        Self { tasks: JoinSet::new(), open: Vec::new(), most, gauge }
    }

    /// Waits until one more connection may be open. Cancel safe.
    async fn make_room(&mut self, shared: &ConnectionShared) {
        let began = shared.clock.now();
        loop {
            while self.tasks.try_join_next().is_some() {}
            self.open.retain(|(task, _)| !task.is_finished());
            if self.open.len() < self.most {
                return;
            }
            if let Some(at) = self.least(shared.clock.now() >= began + SLOW) {
                self.open.remove(at).0.abort();
                shared.closed("displaced");
                continue;
            }
            tokio::select! {
                biased;
                _ = self.tasks.join_next() => {}
                () = shared.clock.sleep(LOOK) => {}
            }
        }
    }

    /// Returns the place of the connection that is closed for another one, if one may be. A
    /// connection that was used just now is spared while others are sending: they are slow soon, or
    /// done; but not by a connection that `has_waited` for that.
    fn least(&self, has_waited: bool) -> Option<usize> {
        let orders = self.open.iter().map(|(_, progress)| progress.eviction_order());
        let orders: Vec<_> = orders.enumerate().map(|(at, (it, since))| (it, since, at)).collect();
        let is_sending = orders.iter().any(|(order, ..)| *order == EvictionOrder::Sending);
        let (order, _, at) = *orders.iter().min()?;
        let goes = match order {
            EvictionOrder::NoRequest | EvictionOrder::Slow | EvictionOrder::Idle => true,
            EvictionOrder::Recent => !is_sending || has_waited,
            EvictionOrder::Sending | EvictionOrder::Handling => false,
        };
        goes.then_some(at)
    }

    /// Whether none is open.
    fn are_none(&mut self) -> bool {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.is_empty()
    }

    fn add(&mut self, io: BoxIo, shared: &Arc<ConnectionShared>) {
        let progress = Arc::new(ConnectionProgress::new(shared.clock.clone()));
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
