//! What a reconcile asks for when it succeeded.

use std::time::Duration;

/// When to look at the object again after a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Action {
    pub(crate) requeue_after: Option<Duration>,
}

impl Action {
    /// Nothing more to do until something changes.
    pub fn done() -> Self {
        Self { requeue_after: None }
    }

    /// Look again after `delay`, also when nothing changes.
    pub fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }
}
