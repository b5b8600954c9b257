//! Values that different processors change, on lines of memory of their own.

use std::ops::Deref;

/// What is not to share a line of memory with what others change: whoever changes one byte of a line takes
/// the whole line away from everybody else, which costs as much as a lock. Two lines, as they are fetched
/// in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
