//! What a reflector is doing, for readiness; one log line per change.

use std::fmt;

use parking_lot::Mutex;

/// What a reflector does or waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not started.
    Idle,
    /// Reading the current state.
    Listing,
    /// Following changes.
    Watching,
    /// Waiting to try again.
    Retrying(String),
    /// The kind is not served.
    Absent(String),
    /// 401 or 403; what is missing is in the text.
    Degraded(String),
    /// Stopped for good.
    Stopped,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("not started"),
            Self::Listing => f.write_str("reading the current state"),
            Self::Watching => f.write_str("watching"),
            Self::Retrying(why) => write!(f, "retrying: {why}"),
            Self::Absent(why) => write!(f, "absent, looked for every 5 s: {why}"),
            Self::Degraded(why) => write!(f, "degraded, retrying: {why}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

/// The state of one reflector, readable from anywhere.
#[derive(Debug)]
pub(crate) struct Status {
    /// `websites.example.dev in "shop"`, for the log.
    what: String,
    state: Mutex<State>,
}

impl Status {
    pub(crate) fn new(what: String) -> Self {
        Self { what, state: Mutex::new(State::Idle) }
    }

    pub(crate) fn get(&self) -> State {
        self.state.lock().clone()
    }

    /// Sets the state and logs it if it is of another kind than before.
    pub(crate) fn set(&self, state: State) {
        let before = std::mem::replace(&mut *self.state.lock(), state.clone());
        if std::mem::discriminant(&before) == std::mem::discriminant(&state) {
            tracing::debug!(resource = %self.what, %state, "cache");
            return;
        }
        match state {
            State::Degraded(_) | State::Retrying(_) => {
                tracing::warn!(resource = %self.what, %state, "cache");
            }
            State::Absent(_) => tracing::warn!(resource = %self.what, %state, "cache"),
            // Back from a pause: only the end of trouble is news.
            State::Listing => tracing::debug!(resource = %self.what, %state, "cache"),
            _ => tracing::info!(resource = %self.what, %state, "cache"),
        }
    }
}
