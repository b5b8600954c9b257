//! Faults of open watches: orders that tests send to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::FaultsShared;
use crate::signal::Receiver;

/// An order to an open watch: an end without an error, an end with an ERROR event of a code, raw
/// bytes as a frame, or repeated changes.
#[derive(Clone, Debug)]
pub(crate) enum WatchCommand {
    Close,
    Fail(u16),
    Raw(Bytes),
    /// Sends changes again: those of the last `back` revisions, or only the first of them.
    Again {
        back: u64,
        only_one: bool,
    },
}

/// Longest queue of orders of a watch; further orders are lost.
const WAITING: usize = 64;

/// The open watches by id, each with the resource and the sender of orders.
#[derive(Debug, Default)]
pub(super) struct Taps {
    next: u64,
    open: BTreeMap<u64, (String, mpsc::Sender<WatchCommand>)>,
}

impl Taps {
    /// Sends an order to the open watches of a resource.
    pub(super) fn order(&mut self, resource: &str, order: &WatchCommand) {
        for (held, sender) in self.open.values() {
            let meant = resource == "*" || held == resource;
            // Never waits: the caller holds the lock, and a watch that is not read takes no orders.
            if meant && sender.try_send(order.clone()).is_err() {
                tracing::debug!(resource, "a watch has too many orders waiting");
            }
        }
    }

    /// Returns the number of open watches of a resource.
    pub(super) fn count(&self, resource: &str) -> usize {
        self.open.values().filter(|(held, _)| resource == "*" || held == resource).count()
    }
}

/// Receiver of an open watch's orders. A drop removes it from the list.
#[derive(Debug)]
pub(crate) struct Tap {
    shared: Arc<FaultsShared>,
    id: u64,
    resource: String,
    orders: mpsc::Receiver<WatchCommand>,
    pauses: Receiver,
}

impl Tap {
    /// Registers an open watch.
    pub(super) fn open(shared: Arc<FaultsShared>, resource: &str) -> Self {
        let (sender, orders) = mpsc::channel(WAITING);
        let id = {
            let mut taps = shared.taps.lock();
            taps.next += 1;
            let id = taps.next;
            taps.open.insert(id, (resource.to_owned(), sender));
            id
        };
        let pauses = shared.pauses.subscribe();
        Self { shared, id, resource: resource.to_owned(), orders, pauses }
    }

    /// Whether delivery is paused for this watch's resource.
    pub(crate) fn paused(&self) -> bool {
        let paused = self.shared.paused.lock();
        paused.contains(&self.resource) || paused.contains("*")
    }

    /// Returns the delay between a change and the delivery of the event.
    pub(crate) fn lag(&self) -> Duration {
        let lags = self.shared.lags.lock();
        lags.get(&self.resource).or_else(|| lags.get("*")).copied().unwrap_or_default()
    }

    /// Returns the next order, or `None` when the pauses changed.
    ///
    /// # Cancel safety
    /// Cancel safe: no order is lost.
    pub(crate) async fn next(&mut self) -> Option<WatchCommand> {
        tokio::select! {
            biased;
            // Orders first: an order given before a resume is executed before events flow again.
            order = self.orders.recv() => match order {
                Some(order) => Some(order),
                // Not reached: the sender lives in `Taps` for as long as this value does.
                None => std::future::pending().await,
            },
            () = self.pauses.next() => None,
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        // By id: other watches of the same resource stay.
        self.shared.taps.lock().open.remove(&self.id);
    }
}
