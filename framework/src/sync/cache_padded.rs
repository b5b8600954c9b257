//! Padding that keeps values of different processors on separate cache lines.

use std::ops::Deref;

/// A value alone on its cache lines. A processor that changes one byte of a line takes the whole
/// line away from all others, which costs as much as a lock. Two lines, as they are fetched in
/// pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
