//! States of a queue that several tasks share: synced, and closed.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// Error of a queue that is closed.
///
/// A closed queue stays closed. Queued items are handed out before pops return this error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The queue's name.
    pub name: Arc<str>,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the queue {:?} is closed", self.name)
    }
}

impl StdError for Closed {}

/// A component that becomes synced, with a name for the report of missing components.
///
/// For a program with several queues or caches of its own, whose readiness names the missing ones.
pub trait Synced {
    /// Returns the component's name.
    fn name(&self) -> &str;
    /// Whether the component's first list was processed.
    fn has_synced(&self) -> bool;
}

/// Returns the names of the components that have not synced, in the order given.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::{Synced, unsynced};
///
/// struct Cache(&'static str, bool);
///
/// impl Synced for Cache {
///     fn name(&self) -> &str {
///         self.0
///     }
///     fn has_synced(&self) -> bool {
///         self.1
///     }
/// }
/// assert_eq!(unsynced(&[&Cache("pods", true), &Cache("nodes", false)]), ["nodes"]);
/// ```
pub fn unsynced<'a>(all: &[&'a dyn Synced]) -> Vec<&'a str> {
    all.iter().filter(|one| !one.has_synced()).map(|one| one.name()).collect()
}
