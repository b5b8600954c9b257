//! Result of a successful reconcile.
//!
//! The counterpart of controller-runtime's `reconcile.Result`. A failure has no action: the next
//! attempt follows from the [`Failure`](crate::controller::Failure) and the retry policy.
//!
//! Not included: a field for "requeue now, rate limited", controller-runtime's deprecated `Requeue:
//! true`. A reconcile that cannot finish yet returns a wait, or an action with a delay.

// DESIGN.md, 156: A wait is neither a success nor a failure
// DESIGN.md, 190: A child that has failed stalls its owner, and is no failed reconcile
// DESIGN.md, 247: The message of a waiting owner has the fights about its children, too

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Most children of one object in the text of a wait that others change again and again.
const MOST_FIGHTS: usize = 8;

/// Time of the next reconcile after a success.
///
/// A success resets the object's backoff and the number of failures in a row. The time is that of
/// this object alone: changes of the object, of children and of mapped objects reconcile it
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Action {
    /// Delay of the next reconcile, counted from the end of this reconcile; `None` if the action
    /// causes no reconcile.
    pub(crate) requeue_after: Option<Duration>,
    /// The wait that ended the reconcile. Boxed, because most reconciles end without a wait.
    pub(crate) wait: Option<Box<Wait>>,
}

/// Something that a reconcile waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// A word in `CamelCase`, for programs.
    pub(crate) reason: Cow<'static, str>,
    /// A text for people.
    pub(crate) text: String,
    /// Delay of the next check, if not by the backoff.
    pub(crate) check_after: Option<Duration>,
    /// Whether nothing is in progress any more: a child has failed. Conditions then show a stall.
    pub(crate) is_stalled: bool,
}

impl Wait {
    /// Returns a wait for something that is in progress, with the checks of the backoff.
    pub(crate) fn new(reason: impl Into<Cow<'static, str>>, text: String) -> Self {
        Self { reason: reason.into(), text, check_after: None, is_stalled: false }
    }

    /// Adds texts about children that others change again and again, each with the time until it is
    /// over unless it goes on. The next check comes by then at the latest: nothing else shows the
    /// end.
    pub(crate) fn add_fights(&mut self, fights: impl Iterator<Item = (String, Duration)>) {
        for (text, rest) in fights.take(MOST_FIGHTS) {
            self.text.push_str("; ");
            self.text.push_str(&text);
            self.check_after = self.check_after.map(|delay| delay.min(rest));
        }
    }
}

impl Action {
    /// No further reconcile until something changes.
    ///
    /// The periodic resync of the controller (10 h by default) and the timers still reconcile the
    /// object.
    pub fn done() -> Self {
        Self { requeue_after: None, wait: None }
    }

    /// A further reconcile after `delay`, also when nothing changes.
    ///
    /// For state that no watch shows: an external system, an expiry, a rollout with a deadline. The
    /// delay is exact; [`Context::spread`](crate::controller::Context::spread) adds a random part
    /// so that objects which were reconciled together drift apart. A reconcile that comes before
    /// the delay is over decides anew. Delays do not survive a restart: a starting controller
    /// reconciles every object.
    ///
    /// For a fixed interval, independent of other reconciles, use a
    /// [`Timer`](crate::controller::Timer) instead.
    pub fn requeue_after(delay: Duration) -> Self {
        Self { requeue_after: Some(delay), wait: None }
    }

    /// The object is not ready, and nothing has failed: a rollout, a certificate, a disk that is
    /// being made.
    ///
    /// A wait is neither an error nor a success. A wait is not counted among the errors, not logged
    /// as an error, and has no retries to use up; the failures in a row end with a wait. The
    /// condition of [`outcome_condition`](crate::controller::ControllerBuilder::outcome_condition)
    /// is false with the reason `Waiting` (`Terminating` for an object that is being deleted), and
    /// the message begins with `reason`. The gauge `windlass_waiting_objects` and the debug page
    /// show the waiting object.
    ///
    /// `reason` is a word in `CamelCase`, `text` describes the progress: `"2 of 3 ready"`.
    ///
    /// The object is reconciled when something changes, and is checked after 1 s, then 2 s, 4 s and
    /// so on up to 60 s for as long as reason and text stay the same; see
    /// [`check_after`](Self::check_after). The task of an object starts, and changes are counted,
    /// after a reconcile without a wait.
    ///
    /// A clean-up, and a function that returns another type, waits by
    /// [`Failure::wait_for`](crate::controller::Failure::wait_for).
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// use windlass::controller::Action;
    ///
    /// fn rollout(ready: i32, wanted: i32) -> Action {
    ///     if ready >= wanted {
    ///         return Action::done();
    ///     }
    ///     Action::wait_for("Rollout", format!("{ready} of {wanted} ready"))
    /// }
    /// assert_eq!(rollout(3, 3), Action::done());
    /// ```
    pub fn wait_for(reason: impl Into<Cow<'static, str>>, text: impl fmt::Display) -> Self {
        let wait = Wait::new(reason, text.to_string());
        Self { requeue_after: None, wait: Some(Box::new(wait)) }
    }

    /// As [`wait_for`](Self::wait_for), for an object that needs help: conditions show the object
    /// as stalled. Checks continue as during a wait, because help may come without a change that a
    /// watch shows.
    pub(crate) fn stalled(reason: impl Into<Cow<'static, str>>, text: String) -> Self {
        let wait = Wait { is_stalled: true, ..Wait::new(reason, text) };
        Self { requeue_after: None, wait: Some(Box::new(wait)) }
    }

    /// Sets the delay of the next check of a [wait](Self::wait_for), which then has no backoff; no
    /// effect on other actions.
    pub fn check_after(mut self, delay: Duration) -> Self {
        if let Some(wait) = &mut self.wait {
            wait.check_after = Some(delay);
        }
        self
    }
}
