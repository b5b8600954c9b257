//! Orders to open watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::Shared;
use crate::signal::Ear;

/// What an open watch must do.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Close,
    Fail(u16),
    Raw(Bytes),
    /// Shows changes again: those since this many revisions, or only the first of them.
    Again {
        back: u64,
        only_one: bool,
    },
}

/// Orders that may wait at one watch; more are lost.
const WAITING: usize = 64;

/// The open watches.
#[derive(Debug, Default)]
pub(super) struct Taps {
    next: u64,
    open: BTreeMap<u64, (String, mpsc::Sender<Order>)>,
}

impl Taps {
    pub(super) fn order(&mut self, resource: &str, order: &Order) {
        for (held, sender) in self.open.values() {
            let meant = resource == "*" || held == resource;
            if meant && sender.try_send(order.clone()).is_err() {
                tracing::debug!(resource, "a watch has too many orders waiting");
            }
        }
    }

    pub(super) fn count(&self, resource: &str) -> usize {
        self.open.values().filter(|(held, _)| resource == "*" || held == resource).count()
    }
}

/// Where one open watch takes orders; closing it forgets the watch.
#[derive(Debug)]
pub(crate) struct Tap {
    shared: Arc<Shared>,
    id: u64,
    resource: String,
    orders: mpsc::Receiver<Order>,
    pauses: Ear,
}

impl Tap {
    pub(super) fn open(shared: Arc<Shared>, resource: &str) -> Self {
        let (sender, orders) = mpsc::channel(WAITING);
        let id = {
            let mut taps = shared.taps.lock();
            taps.next += 1;
            let id = taps.next;
            taps.open.insert(id, (resource.to_owned(), sender));
            id
        };
        let pauses = shared.pauses.ear();
        Self { shared, id, resource: resource.to_owned(), orders, pauses }
    }

    /// Are deliveries paused?
    pub(crate) fn paused(&self) -> bool {
        let paused = self.shared.paused.lock();
        paused.contains(&self.resource) || paused.contains("*")
    }

    /// How long after its change an event is delivered.
    pub(crate) fn lag(&self) -> Duration {
        let lags = self.shared.lags.lock();
        lags.get(&self.resource).or_else(|| lags.get("*")).copied().unwrap_or_default()
    }

    /// An order, or `None` when the pauses changed. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Order> {
        tokio::select! {
            biased;
            order = self.orders.recv() => match order {
                Some(order) => Some(order),
                None => std::future::pending().await,
            },
            () = self.pauses.next() => None,
        }
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.shared.taps.lock().open.remove(&self.id);
    }
}
