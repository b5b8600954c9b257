//! The result of an attempt at a key.

use std::time::Duration;

/// The result of an attempt at a key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::workqueue) enum Completion {
    /// Success.
    Done,
    /// Success, and the key is not likely to be added again.
    Gone,
    /// Success; the key is requeued after this delay.
    After(Duration),
    /// Failure; `draw` in `[0, 1)` picks the delay below the bound.
    Retry { draw: f64 },
    /// As `Retry`, counted as the first failure in a row.
    RetryAnew { draw: f64 },
    /// Failure with a delay from the caller; the bound does not grow.
    RetryAfter(Duration),
    /// Not worked on yet: neither success nor failure; the key is requeued after this delay.
    Hold(Duration),
}
