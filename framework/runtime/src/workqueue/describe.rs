//! Description of a queue's keys, for debug dumps.

use std::time::Duration;

use super::Priority;

/// The stage of a key in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyStage {
    /// In work.
    Working,
    /// Ready for a worker.
    Queued,
    /// Waiting for a retry after a failure, or held without having been worked on.
    BackingOff,
    /// Waiting for its time without having failed.
    Delayed,
}

impl KeyStage {
    /// Returns the name that dumps use: `working`, `queued`, `backing off`, `delayed`.
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
    /// Its stage.
    pub stage: KeyStage,
    /// Failures in a row.
    pub failures: u32,
    /// Time for which it has been ready or in work; `None` while it is delayed.
    pub age: Option<Duration>,
    /// Time until it is due, if it is delayed; of a key in work, time until it is due again.
    pub due_in: Option<Duration>,
    /// Whether it was added again while in work.
    pub again: bool,
    /// Priority of its attempt, the next one or the one under way.
    pub priority: Priority,
    /// Reasons of its next attempt; of a key in work, those gathered for its next attempt.
    pub reasons: u64,
}
