//! Decides whether caches kept their promises (G-C1…G-C9), from the states that the server
//! committed.
//!
//! A [`Book`] holds every state that the server had of every key, in order, and every state that
//! each listener and reader of a cache was shown. Each state that a cache shows is looked up in the
//! book: a state that never was, that is older than a state shown before, or that is missing at the
//! end is a [`Violation`].
//!
//! The oracle is independent of caches, servers, tasks and time, so that a broken trace can be
//! written down in a test; [`crate::chaos`] feeds it from a running world.

mod book;
mod history;
mod isolation;
mod listener;
mod reader;
mod start;
#[cfg(test)]
mod tests;
mod violation;

pub use book::{Book, Counts};
pub use history::{History, KeyId, Scope, State};
pub use isolation::{decodes, undisturbed};
pub use listener::Listener;
pub use reader::{Reader, View};
pub use start::Start;
pub use violation::Violation;

/// A version of an object, as a cache or the server shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// A number for the uid.
    pub uid: u64,
    /// resourceVersion.
    pub version: u64,
    /// Serial number of the content: the whole object follows from it.
    pub serial: u64,
}

/// Event that a listener received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// New in the cache.
    Added(Shown),
    /// Another version.
    Updated {
        /// Before.
        old: Shown,
        /// After.
        new: Shown,
    },
    /// Gone; with the version that was delivered last.
    Deleted(Shown),
    /// No change: delivered again.
    Resync(Shown),
}
