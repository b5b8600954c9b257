//! Findings about one server, shared by all its reflectors.
//!
//! The findings are hints: a wrong one costs a request and never an object. Each lock is held for a
//! comparison only, and never while reflectors are notified.

// DESIGN.md, 31: A server's refusal of streaming lists is cached for an hour
// DESIGN.md, 99: Signs of a restored store lead to a check or to a list

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use windlass_core::sync::{Mutex, Notify};

/// Time for which a refusal of streaming lists counts: servers are upgraded, and features switched
/// on, under operators that run for months. Another attempt costs a server that refuses one small
/// request an hour, and 30 s once on one that gives no answer.
pub(super) const REFUSAL_COUNTS: Duration = Duration::from_secs(3600);
/// Shortest interval between two notices that the store was set back: the reflectors of all
/// kinds detect it within a moment, and each of them checks again after a notice of another one.
const PASSED_ON: Duration = Duration::from_secs(60);

/// Capabilities that one server lacks, and the state of its store.
#[derive(Debug, Default)]
pub(crate) struct ServerCapabilities {
    /// Time of its last refusal of a streaming list.
    refused: Mutex<Option<Instant>>,
    /// Time at which its store was last found to be set back, and a version that it had before.
    set_back: Mutex<Option<(Instant, Arc<str>)>>,
    /// Notified when reflectors have hints to check.
    check_request: Notify,
}

impl ServerCapabilities {
    /// Returns whether a streaming list may be tried.
    pub(super) fn streams_lists(&self, now: Instant) -> bool {
        self.refused.lock().is_none_or(|refused| now >= refused + REFUSAL_COUNTS)
    }

    /// Notes that the server refused a streaming list.
    pub(super) fn refused_stream(&self, now: Instant) {
        *self.refused.lock() = Some(now);
    }

    /// Notes that the store had `version` and no longer has it. Most kinds share one store: the
    /// kind with the newest position detects this for all.
    pub(super) fn found_set_back(&self, now: Instant, version: &str) {
        {
            let mut set_back = self.set_back.lock();
            if set_back.as_ref().is_some_and(|(last, _)| now < *last + PASSED_ON) {
                return;
            }
            *set_back = Some((now, Arc::from(version)));
        }
        // Released before the notification: the woken reflectors read `set_back`.
        self.request_check();
    }

    /// Returns the time at which its store was last found to be set back, and a version that it had
    /// before.
    pub(super) fn set_back(&self) -> Option<(Instant, Arc<str>)> {
        self.set_back.lock().clone()
    }

    /// Makes every reflector check whether the store was set back.
    pub(crate) fn request_check(&self) {
        // Waiters only: a reflector that is busy checks its own hints at its next attempt.
        self.check_request.notify_waiters();
    }

    /// Waits for the next request of a check; earlier requests are not seen.
    pub(super) fn check_requested(&self) -> tokio::sync::futures::Notified<'_> {
        self.check_request.notified()
    }
}
