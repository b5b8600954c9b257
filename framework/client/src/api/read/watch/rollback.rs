//! Checks whether the store was set back while a resuming watch had no connection.
//!
//! A kube-apiserver answers a watch from a version that the store has not reached with 200 and
//! silence. A single object, listed as a consistent read, shows the version of the store. The check
//! runs beside the watch: a list that fails or is slow delays no event.

// DESIGN.md, 70: After a lost connection one object is listed to detect a restored store

use std::cmp::Ordering;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pause::pause;
use super::version::compare;
use crate::api::draft::{ApiTarget, Draft};
use crate::api::read::List;
use crate::client::Verb;
use windlass_core::error::Error;
use windlass_core::resource::PartialObject;

/// Longest time of a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest pause after a list that was forbidden: the role may change, but seldom does.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(300);
/// Shortest time between two checks because of old events: a server that is behind sends such
/// events, too.
const OLD_EVENTS_APART: Duration = Duration::from_secs(120);

/// A list whose result is the version of the store.
type ListedVersion = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

/// Checks whether the server's store is older than the versions that a watch has shown.
pub(super) struct RollbackProbe {
    target: Arc<ApiTarget>,
    /// The watch's selectors: a role may grant lists of these objects only.
    selectors: Vec<(&'static str, String)>,
    /// Time of the next list; `None` while no list is necessary.
    due: Option<Instant>,
    list: Option<ListedVersion>,
    /// Whether a connection was lost since the list began: the answer may be that of the store
    /// before the set-back.
    is_outdated: bool,
    /// The watch's version when the list began.
    known: String,
    /// Lists in a row that failed.
    failures: u32,
    /// The last time at which an old event asked for a check.
    old_event_at: Option<Instant>,
    /// No list begins before: the end of the pause after a failed list.
    not_before: Option<Instant>,
}

impl RollbackProbe {
    /// A check of the watch that `draft` requests. The first is due at once: the version to begin
    /// after may be from before a set-back.
    pub(super) fn new(draft: &Draft) -> Self {
        let selectors = draft.prepared.query.iter().filter_map(|(key, value)| {
            let key = ["fieldSelector", "labelSelector"].into_iter().find(|known| known == key)?;
            Some((key, value.clone()))
        });
        Self {
            target: Arc::new(draft.target.metadata()),
            selectors: selectors.collect(),
            due: Some(draft.target.client.environment().clock.now()),
            list: None,
            is_outdated: false,
            known: String::new(),
            failures: 0,
            old_event_at: None,
            not_before: None,
        }
    }

    /// Requests a check after a lost connection: the store may have been replaced since.
    pub(super) fn connection_lost(&mut self) {
        // The list under way goes on: where every watch ends at once, none would ever be answered.
        self.is_outdated = self.list.is_some();
        // Nor does a lost connection shorten the pause that the server asked for.
        self.due = self.not_before.max(Some(self.now()));
    }

    /// Requests a check after an event that is older than an earlier event.
    pub(super) fn old_event(&mut self) {
        let now = self.now();
        let is_early = self.old_event_at.is_some_and(|last| now < last + OLD_EVENTS_APART);
        if !is_early && self.due.is_none() {
            self.old_event_at = Some(now);
            self.due = Some(now);
        }
    }

    /// Returns the store's version once that version is lower than the watch's; pending otherwise.
    /// Begins a list that is due.
    ///
    /// # Cancel safety
    /// Safe: the next call continues the list.
    pub(super) async fn rolled_back(&mut self, version: &str) -> String {
        let clock = self.target.client.environment().clock.clone();
        loop {
            if self.list.is_none() {
                let Some(due) = self.due else { return pending().await };
                clock.sleep_until(due).await;
                // The watch may advance while the list runs: only the version before the list
                // counts.
                version.clone_into(&mut self.known);
                self.list = Some(newest(&self.target, &self.selectors));
            }
            if let Some(store) = self.answered().await {
                return store;
            }
        }
    }

    /// The same while the watch has no connection: begins no list, as the server may be away.
    ///
    /// # Cancel safety
    /// Safe: the next call continues the list.
    pub(super) async fn rolled_back_meanwhile(&mut self) -> String {
        if self.list.is_some()
            && let Some(store) = self.answered().await
        {
            return store;
        }
        pending().await
    }

    /// Waits for the list under way; returns the store's version if that version is lower than the
    /// watch's.
    async fn answered(&mut self) -> Option<String> {
        let listed = self.list.as_mut()?.await;
        self.list = None;
        let is_outdated = std::mem::take(&mut self.is_outdated);
        match listed {
            Ok(store) if compare(&store, &self.known) == Some(Ordering::Less) => {
                return Some(store);
            }
            Ok(_) if is_outdated => {}
            Ok(_) => (self.due, self.failures, self.not_before) = (None, 0, None),
            Err(error) => self.failed(&error),
        }
        None
    }

    /// Schedules another list after a failed list.
    fn failed(&mut self, error: &Error) {
        tracing::debug!(%error, "cannot determine whether the store of the server was rolled back");
        let environment = self.target.client.environment();
        let least = if error.is_forbidden() { FORBIDDEN_PAUSE } else { Duration::ZERO };
        let pause = pause(environment, self.failures, error.retry_after()).max(least);
        self.not_before = Some(environment.clock.now() + pause);
        self.due = self.not_before;
        self.failures = self.failures.saturating_add(1);
    }

    fn now(&self) -> Instant {
        self.target.client.environment().clock.now()
    }
}

/// Lists a single object, without a version: a consistent read, which shows the version of the
/// store.
fn newest(target: &Arc<ApiTarget>, selectors: &[(&'static str, String)]) -> ListedVersion {
    let mut draft = Draft::collection(target, Verb::List);
    selectors.iter().for_each(|(key, value)| draft.set(key, value.clone()));
    let list: List<PartialObject> = List::new(draft);
    let list = list.limit(1).timeout(LIST_TIMEOUT);
    Box::pin(async move { Ok(list.await?.resource_version) })
}

impl fmt::Debug for RollbackProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RollbackProbe").field("due", &self.due).finish_non_exhaustive()
    }
}
