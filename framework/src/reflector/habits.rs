//! What one server has been found to speak; shared by all reflectors on it.

use std::time::Duration;

use tokio::time::Instant;

use crate::sync::Mutex;

/// A refusal of streaming lists counts for so long: servers are upgraded, and features switched on,
/// under operators that run for months. Asking again costs a server that refuses one small request
/// an hour, and one that says nothing 30 s once.
pub(super) const REFUSAL_COUNTS: Duration = Duration::from_secs(3600);

/// What one server does not speak.
#[derive(Debug, Default)]
pub(crate) struct Habits {
    /// When it refused a streaming list last.
    refused: Mutex<Option<Instant>>,
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
}
