//! What becomes of a queue that several tasks use: it is synced once, and closed once.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use super::contract::Queue;
use super::shared::Shared;

/// The queue of this name is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the queue {:?} is closed", self.name)
    }
}

impl StdError for Closed {}

/// Something that becomes synced, and has a name for when it does not.
pub trait Synced {
    /// The name.
    fn name(&self) -> &str;
    /// Was its first list processed?
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

/// The names of those that have not synced, in the order given.
pub fn unsynced<'a>(all: &[&'a dyn Synced]) -> Vec<&'a str> {
    all.iter().filter(|one| !one.has_synced()).map(|one| one.name()).collect()
}
