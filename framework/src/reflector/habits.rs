//! What has been found out of one server; shared by all reflectors on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::{Mutex, Notify};

/// A refusal of streaming lists counts for so long: servers are upgraded, and features switched on,
/// under operators that run for months. Asking again costs a server that refuses one small request
/// an hour, and one that says nothing 30 s once.
pub(super) const REFUSAL_COUNTS: Duration = Duration::from_secs(3600);
/// That the store was set back is passed on at most so often: all kinds find it within a moment, and
/// each of them looks again when another one did.
const PASSED_ON: Duration = Duration::from_secs(60);

/// What one server does not speak, and what became of its store.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// When it refused a streaming list last.
    refused: Mutex<Option<Instant>>,
    /// When its store was last found to have been set back, and a version that it had before.
    set_back: Mutex<Option<(Instant, Arc<str>)>>,
    /// Reflectors have something to look at.
    call: Notify,
}

impl Habits {
    /// Is a streaming list worth a try?
    pub(super) fn streams_lists(&self, now: Instant) -> bool {
        self.refused.lock().is_none_or(|refused| now >= refused + REFUSAL_COUNTS)
    }

    /// It does not stream lists.
    pub(super) fn refused_stream(&self, now: Instant) {
        *self.refused.lock() = Some(now);
    }

    /// Its store had `version` and has it no more. Most kinds share one store: the kind whose position
    /// is furthest sees it for all.
    pub(super) fn found_set_back(&self, now: Instant, version: &str) {
        {
            let mut set_back = self.set_back.lock();
            if set_back.as_ref().is_some_and(|(last, _)| now < *last + PASSED_ON) {
                return;
            }
            *set_back = Some((now, Arc::from(version)));
        }
        self.call();
    }

    /// When its store was last found to have been set back, and a version that it had before.
    pub(super) fn set_back(&self) -> Option<(Instant, Arc<str>)> {
        self.set_back.lock().clone()
    }

    /// Has every reflector look at what others have seen.
    pub(crate) fn call(&self) {
        self.call.notify_waiters();
    }

    /// Waits for the next call, from when this is called.
    pub(super) fn called(&self) -> tokio::sync::futures::Notified<'_> {
        self.call.notified()
    }
}
