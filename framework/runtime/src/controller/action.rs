//! Result of a successful reconcile.
//!
//! The counterpart of controller-runtime's `reconcile.Result`. A failure has no action: its next
//! attempt follows from the [`Failure`](crate::controller::Failure) and the retry policy.
//!
//! Absent: a field for "requeue now, rate limited", controller-runtime's deprecated `Requeue:
//! true`. A reconcile that cannot finish yet returns a failure, or an action with a delay.

use std::time::Duration;

/// Time of the next reconcile after a success.
///
/// A success resets the backoff of the object and its number of failures in a row. The time is that
/// of this object alone: changes of the object, of its children and of mapped objects reconcile it
/// earlier, and that reconcile's own action then replaces this one.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use std::time::Duration;
/// use windlass::controller::Action;
///
/// /// Checks a certificate again halfway to its end.
/// fn next_check(valid_for: Duration) -> Action {
///     let half = valid_for / 2;
///     if half.is_zero() { Action::done() } else { Action::requeue_after(half) }
/// }
/// let (long, half) = (Duration::from_secs(600), Duration::from_secs(300));
/// assert_eq!(next_check(long), Action::requeue_after(half));
/// assert_eq!(next_check(Duration::ZERO), Action::done());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Action {
    /// Delay of the next reconcile, counted from the end of this one; `None` for no reconcile of
    /// its own.
    pub(crate) requeue_after: Option<Duration>,
}

impl Action {
    /// No further reconcile until something changes.
    ///
    /// The periodic resync of the controller (10 h by default) and its timers still reconcile the
    /// object.
    pub fn done() -> Self {
        Self { requeue_after: None }
    }

    /// A further reconcile after `delay`, also when nothing changes.
    ///
    /// For state that no watch shows: an external system, an expiry, a rollout with a deadline. The
    /// delay is exact; [`Context::spread`](crate::controller::Context::spread) adds a random part
    /// so that objects which were reconciled together drift apart. A reconcile that comes before
    /// the delay is over decides anew. Delays do not survive a restart: at its start a controller
    /// reconciles every object.
    ///
    /// For a fixed interval, independent of other reconciles, use a
    /// [`Timer`](crate::controller::Timer) instead.
    pub fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }
}
