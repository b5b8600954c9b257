//! Progress of an informer's scopes.

use std::cmp::Ordering;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::store::{MarkKind, StreamMark, order};
use windlass_core::sync::OrderedWatch;

/// Progress of the first lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Synced {
    /// At least one scope has not been listed.
    Pending,
    /// Every scope was listed, or the kind is not served; the listeners have the content.
    Done,
    /// The informer stopped.
    Stopped,
}

/// Progress of a scope.
#[derive(Clone, Debug, Default)]
struct ScopeProgress {
    /// A list was applied, and the kind was not found absent since.
    is_listed: bool,
    /// Listed, or known to be absent.
    is_settled: bool,
    version: Arc<str>,
    /// Time at which a newer version was last received.
    at: Option<Instant>,
}

/// The progress of all scopes, and the state that waiters wait for.
pub(super) struct SyncProgress {
    scopes: Mutex<Vec<ScopeProgress>>,
    sync: OrderedWatch<Synced>,
}

impl SyncProgress {
    pub(super) fn new(scopes: usize) -> Self {
        let scopes = Mutex::new(vec![ScopeProgress::default(); scopes]);
        Self { scopes, sync: OrderedWatch::new(Synced::Pending) }
    }

    /// Notes that all deltas before these marks have been delivered.
    pub(super) fn reach(&self, marks: &[StreamMark], now: Instant) {
        let mut scopes = self.scopes.lock();
        for mark in marks {
            let Some(scope) = scopes.get_mut(mark.scope) else { continue };
            match mark.what {
                MarkKind::Listed | MarkKind::ListedInPart => {
                    scope.is_listed = true;
                    scope.is_settled = true;
                    scope.at = Some(now);
                }
                MarkKind::Absent => {
                    scope.is_listed = false;
                    scope.is_settled = true;
                }
                MarkKind::Reached | MarkKind::NewEpoch => {}
            }
            if scope.version != mark.resource_version {
                scope.version = Arc::clone(&mark.resource_version);
                scope.at = Some(now);
            }
        }
    }

    /// Returns true once: when every scope is settled. To be followed by
    /// [`set_synced`](Self::set_synced).
    pub(super) fn has_just_settled(&self) -> bool {
        // Two reads without a common lock: only the holder of the apply permit calls this function
        // and `reach`, so no scope settles in between.
        self.now() == Synced::Pending && self.scopes.lock().iter().all(|scope| scope.is_settled)
    }

    /// Notifies waiters that the first lists are complete.
    pub(super) fn set_synced(&self) {
        self.sync.update(|sync| {
            // Only from `Pending`: an informer that stopped meanwhile stays stopped.
            let is_first = *sync == Synced::Pending;
            if is_first {
                *sync = Synced::Done;
            }
            is_first
        });
    }

    /// Notifies waiters that the informer has stopped.
    pub(super) fn stop(&self) {
        self.sync.set(Synced::Stopped);
    }

    /// Waits until the state is not [`Pending`](Synced::Pending) any more.
    pub(super) async fn settled(&self) -> Synced {
        self.sync.wait_for(|sync| *sync != Synced::Pending).await
    }

    pub(super) fn now(&self) -> Synced {
        self.sync.get()
    }

    /// Returns whether every scope is listed, and the kind is served.
    pub(super) fn is_listed(&self) -> bool {
        // Two reads without a common lock: a stop in between is as a stop after both.
        self.now() != Synced::Stopped && self.scopes.lock().iter().all(|scope| scope.is_listed)
    }

    /// Returns the newest version that has been applied and delivered.
    pub(super) fn version(&self) -> Arc<str> {
        let scopes = self.scopes.lock();
        let newest = scopes
            .iter()
            .map(|scope| &scope.version)
            .reduce(|a, b| if order(a, b).is_none_or(Ordering::is_lt) { b } else { a });
        newest.map(Arc::clone).unwrap_or_default()
    }

    /// Returns the time of the newest version, of the scope with the oldest such time; `None`
    /// before the first lists.
    pub(super) fn newest_at(&self) -> Option<Instant> {
        let scopes = self.scopes.lock();
        scopes.iter().map(|scope| scope.at).min().flatten()
    }
}
