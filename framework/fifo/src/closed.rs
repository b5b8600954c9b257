//! States of a queue that several tasks share: synced, and closed.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use super::contract::Queue;
use super::shared::Shared;

/// Error of a queue that is closed.
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

/// A component that becomes synced, with a name to report while it is not.
pub trait Synced {
    /// Returns the component's name.
    fn name(&self) -> &str;
    /// Whether its first list was processed.
    fn has_synced(&self) -> bool;
}

impl<Q: Queue> Synced for Shared<Q> {
    fn name(&self) -> &str {
        Shared::name(self)
    }
    fn has_synced(&self) -> bool {
        Shared::has_synced(self)
    }
}

/// Returns the names of the components that have not synced, in the order given.
pub fn unsynced<'a>(all: &[&'a dyn Synced]) -> Vec<&'a str> {
    all.iter().filter(|one| !one.has_synced()).map(|one| one.name()).collect()
}
