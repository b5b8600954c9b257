//! Checks whether the store was set back while a resuming watch had no connection.
//!
//! A kube-apiserver answers a watch from a version that its store has not reached with 200 and
//! silence. One object, listed as a consistent read, shows the version of the store. The check runs
//! beside the watch: a list that fails or is slow delays no event.

use std::cmp::Ordering;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::draft::{Draft, Target};
use super::super::read::List;
use super::resume::{compare, pause};
use crate::client::Verb;
use crate::error::Error;
use crate::resource::PartialObject;

/// Longest time of one list.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest time between two checks because of old events: a server that is behind sends such
/// events, too.
const OLD_EVENTS_APART: Duration = Duration::from_secs(120);

/// A list whose result is the version of the store.
type ListedVersion = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

/// Checks whether the server's store is older than the versions that a watch has shown.
pub(super) struct RollbackCheck {
    target: Arc<Target>,
    /// Time of the next list; `None` while no list is necessary.
    due: Option<Instant>,
    list: Option<ListedVersion>,
    /// The watch's version when the list began.
    known: String,
    /// Lists in a row that failed.
    failures: u32,
    /// The last time at which an old event asked for a check.
    old_event_at: Option<Instant>,
    /// Whether listing is forbidden: the store's version cannot be read.
    is_forbidden: bool,
}

impl RollbackCheck {
    pub(super) fn new(target: &Target) -> Self {
        Self {
            target: Arc::new(target.metadata()),
            due: None,
            list: None,
            known: String::new(),
            failures: 0,
            old_event_at: None,
            is_forbidden: false,
        }
    }

    /// Requests a check after a lost connection: the store may have been replaced since.
    pub(super) fn connection_lost(&mut self) {
        // A list that began before may have been answered from the store before the set-back.
        self.list = None;
        self.due = Some(self.now());
    }

    /// Requests a check after an event that is older than an earlier one.
    pub(super) fn old_event(&mut self) {
        let now = self.now();
        let is_early = self.old_event_at.is_some_and(|last| now < last + OLD_EVENTS_APART);
        if !is_early && self.due.is_none() {
            self.old_event_at = Some(now);
            self.due = Some(now);
        }
    }

    /// Returns the store's version once it is lower than the watch's; pending otherwise.
    ///
    /// # Cancel safety
    /// Safe: the next call continues the list.
    pub(super) async fn rolled_back(&mut self, version: &str) -> String {
        let clock = self.target.client.seams().clock.clone();
        loop {
            let Some(due) = self.due.filter(|_| !self.is_forbidden) else { return pending().await };
            clock.sleep_until(due).await;
            // Stored in the struct: the next call continues a cancelled one.
            let list = self.list.get_or_insert_with(|| {
                // The watch may advance while the list runs: only the version before it counts.
                version.clone_into(&mut self.known);
                newest(&self.target)
            });
            let listed = list.await;
            self.list = None;
            match listed {
                Ok(store) => {
                    (self.due, self.failures) = (None, 0);
                    if compare(&store, &self.known) == Some(Ordering::Less) {
                        return store;
                    }
                }
                Err(error) => self.failed(&error),
            }
        }
    }

    /// Schedules another list after a failed one; none if listing is forbidden.
    fn failed(&mut self, error: &Error) {
        tracing::debug!(%error, "whether the server's store was set back is not known");
        self.is_forbidden = error.is_forbidden();
        let seams = self.target.client.seams();
        self.due = Some(seams.clock.now() + pause(seams, self.failures, error.retry_after()));
        self.failures = self.failures.saturating_add(1);
    }

    fn now(&self) -> Instant {
        self.target.client.seams().clock.now()
    }
}

/// Lists one object, without a version: a consistent read, which shows the version of the store.
fn newest(target: &Arc<Target>) -> ListedVersion {
    let list: List<PartialObject> = List::new(Draft::collection(target, Verb::List));
    let list = list.limit(1).timeout(LIST_TIMEOUT);
    Box::pin(async move { Ok(list.await?.resource_version) })
}

impl fmt::Debug for RollbackCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RollbackCheck")
            .field("due", &self.due)
            .field("is_forbidden", &self.is_forbidden)
            .finish_non_exhaustive()
    }
}
