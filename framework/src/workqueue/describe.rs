//! What a queue holds, key by key, for people who look into it.

use std::time::Duration;

use super::Priority;

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPlace {
    /// In work.
    Working,
    /// Ready for a worker.
    Queued,
    /// Waiting for a retry after a failure, or held back although there is work to do.
    BackingOff,
    /// Waiting for its time without having failed.
    Delayed,
}

impl KeyPlace {
    /// In words, as dumps have it: `working`, `queued`, `backing off`, `delayed`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Queued => "queued",
            Self::BackingOff => "backing off",
            Self::Delayed => "delayed",
        }
    }
}

/// One key of a queue, as [`WorkQueue::describe`](super::WorkQueue::describe) found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyState<T> {
    /// The key.
    pub key: T,
    /// Where it is.
    pub place: KeyPlace,
    /// Failures in a row.
    pub failures: u32,
    /// How long it has been ready or in work; `None` while it waits for its time.
    pub age: Option<Duration>,
    /// When it is due, if it waits for its time; of a key in work, when it is to come back.
    pub due_in: Option<Duration>,
    /// Was it added again while in work?
    pub again: bool,
    /// How urgent its turn is; of a key in work, this turn.
    pub priority: Priority,
    /// Why it is in the queue; of a key in work, what was gathered for its next turn.
    pub reasons: u64,
}
