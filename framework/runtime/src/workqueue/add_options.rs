//! Options of an add: priority, reasons and delay.

use std::fmt;
use std::time::Duration;

/// The priority of a key, as in controller-runtime: a higher number goes first, and keys of equal
/// priority go in the order in which they became ready.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use windlass::workqueue::Priority;
/// assert!(Priority::LOW < Priority::NORMAL);
/// assert_eq!(Priority::new(-100), Priority::LOW);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i8);

impl Priority {
    /// Priority of keys that a controller adds at the start and at a resync: nothing changed, so
    /// changes go first. -100, as controller-runtime's `LowPriority`.
    pub const LOW: Self = Self(-100);
    /// Priority of all other keys; the default. 0.
    pub const NORMAL: Self = Self(0);

    /// Returns a custom priority. A queue keeps lanes for each priority in use, so few are better
    /// than many.
    pub const fn new(value: i8) -> Self {
        Self(value)
    }

    /// Returns the number.
    pub const fn value(self) -> i8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl fmt::Debug for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Priority({})", self.0)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Options of [`WorkQueue::add_with`](super::WorkQueue::add_with).
///
/// When the key is in the queue already, the two adds merge: the higher priority, all the reasons,
/// the earlier time. An add while the key is in work applies to the next attempt.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use std::time::Duration;
/// use windlass::workqueue::{AddOptions, Priority};
/// let resync = AddOptions::new().priority(Priority::LOW).after(Duration::from_secs(60));
/// # let _ = resync;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct AddOptions {
    pub(super) priority: Priority,
    pub(super) reasons: u64,
    pub(super) delay: Duration,
}

impl AddOptions {
    /// Returns the defaults: at once, of normal priority, without reasons.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the priority. Default: [`Priority::NORMAL`].
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the reasons: bits whose meaning the caller defines, merged with those that the key
    /// has already. Default: none.
    pub fn reasons(mut self, reasons: u64) -> Self {
        self.reasons = reasons;
        self
    }

    /// Sets the delay; an earlier time of another add stays. Default: at once.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}
