//! The open connections: accepted up to a number, displaced when more come, ended at the stop.

// DESIGN.md, 290: A client that is slow loses its place before one that is used
// DESIGN.md, 298: A webhook server that stops answers once more on each connection
// DESIGN.md, 310: After its last second a stopping server waits for requests, and not for clients

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
/// Longest time after the last requests in which answers are made and taken: that of the longest
/// review, and some to take its answer. The manager may end the server earlier.
const LAST_ANSWERS: Duration = Duration::from_secs(35);

/// Serves connections until the stop, and those that are open to their end. After the stop each
/// connection is used once more, for some time, and new ones are accepted meanwhile, also if none
/// is open: an API server learns that a connection is closed only after it may have sent the next
/// request, and the network leads new connections here for a moment.
pub(super) async fn run(
    listener: Arc<dyn WebhookListener>,
    most: usize,
    shared: Arc<ConnectionShared>,
) {
    let mut connections = OpenConnections::new(most, &shared);
    let mut last = pin!(last_requests(&shared));
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut last => break,
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
    connections.end(&shared).await;
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

    /// Waits for the answers that are being made. Clients that have not sent a request in two
    /// seconds, or that are slow, are not waited for.
    async fn end(&mut self, shared: &ConnectionShared) {
        let (slow, latest) = (shared.clock.after(SLOW), shared.clock.after(LAST_ANSWERS));
        loop {
            let now = shared.clock.now();
            let is_left = |progress: &ConnectionProgress| {
                let (order, _) = progress.eviction_order();
                let is_used = matches!(order, EvictionOrder::Sending | EvictionOrder::Handling);
                now >= latest || (now >= slow && !is_used)
            };
            for (task, progress) in &self.open {
                if is_left(progress) && !task.is_finished() {
                    task.abort();
                    shared.closed("stop");
                }
            }
            self.open.retain(|(task, progress)| !task.is_finished() && !is_left(progress));
            let next = if now < slow { slow } else { shared.clock.after(LOOK) };
            tokio::select! {
                biased;
                ended = self.tasks.join_next() => if ended.is_none() { return },
                () = shared.clock.sleep_until(next) => {}
            }
        }
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
