//! Findings about a server, shared by all its reflectors.
//!
//! The findings are hints: a wrong finding costs a request and never an object. Each lock is held
//! for a comparison only, and never while reflectors are notified.

// DESIGN.md, 31: A server's refusal of streaming lists is cached for an hour
// DESIGN.md, 99: Signs of a restored store lead to a check or to a list

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use windlass_core::sync::{Mutex, Notify};

/// Time for which a refusal of streaming lists counts: servers are upgraded, and features switched
/// on, under operators that run for months. Another attempt costs a server that refuses a small
/// request an hour, and costs 30 s once on a server that gives no answer.
pub(super) const REFUSAL_COUNTS: Duration = Duration::from_secs(3600);
/// Shortest interval between two notices that the store was set back: the reflectors of all kinds
/// detect it within a moment, and each reflector checks again after a notice of another.
const PASSED_ON: Duration = Duration::from_secs(60);

/// Capabilities that a server lacks, and the state of the server's store.
#[derive(Debug, Default)]
pub(crate) struct ServerCapabilities {
    /// Time of the last refusal of a streaming list.
    refused: Mutex<Option<Instant>>,
    /// Time at which the server's store was last found to be set back, and an earlier version of
    /// the store.
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

    /// Notes that the store had `version`, and has it no longer. Most kinds share one store: the
    /// kind with the newest position detects this for all.
    pub(super) fn found_set_back(&self, now: Instant, version: &str) {
        {
            // Checked and stored under a single lock: of several reflectors that find the set-back
            // at the same time, the first alone notifies.
            let mut set_back = self.set_back.lock();
            if set_back.as_ref().is_some_and(|(last, _)| now < *last + PASSED_ON) {
                return;
            }
            *set_back = Some((now, Arc::from(version)));
        }
        // Released before the notification: the woken reflectors read `set_back`.
        self.request_check();
    }

    /// Returns the time at which the server's store was last found to be set back, and an earlier
    /// version of the store.
    pub(super) fn set_back(&self) -> Option<(Instant, Arc<str>)> {
        self.set_back.lock().clone()
    }

    /// Makes every reflector check whether the store was set back.
    pub(crate) fn request_check(&self) {
        // Waiters only: a reflector that is busy checks the hints at the next attempt.
        self.check_request.notify_waiters();
    }

    /// Waits for the next request of a check; earlier requests are not seen.
    pub(super) fn check_requested(&self) -> tokio::sync::futures::Notified<'_> {
        self.check_request.notified()
    }
}
