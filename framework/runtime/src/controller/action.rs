//! Result of a successful reconcile.

use std::time::Duration;

/// Time of the next reconcile after a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Action {
    pub(crate) requeue_after: Option<Duration>,
}

impl Action {
    /// No further reconcile until something changes.
    pub fn done() -> Self {
        Self { requeue_after: None }
    }

    /// A further reconcile after `delay`, also when nothing changes.
    pub fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }
}
