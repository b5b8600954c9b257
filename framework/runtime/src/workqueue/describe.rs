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
    /// Waiting for a point in time without having failed.
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

/// A key of a queue, as [`WorkQueue::describe`](super::WorkQueue::describe) found it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyState<T> {
    /// The described key.
    pub key: T,
    /// Whether the key is ready, delayed or in work.
    pub stage: KeyStage,
    /// Failures in a row; 0 after a success, and for a key that never failed.
    pub failures: u32,
    /// Time for which the key has been ready or in work; `None` while delayed.
    pub age: Option<Duration>,
    /// Time until the key is due, if delayed; of a key in work, time until the key is due again.
    pub due_in: Option<Duration>,
    /// Whether the key was added again while in work.
    pub again: bool,
    /// Priority of the key's attempt: the next attempt or the running one.
    pub priority: Priority,
    /// Reasons of the next attempt; of a key in work, the reasons gathered since its start.
    pub reasons: u64,
}
