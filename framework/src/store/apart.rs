//! A value with the processor's cache lines to itself.
//!
//! A lock or a counter that one thread writes takes from all others the line that it stands on, and
//! what stands beside it. The thread that applies changes and those that decode objects write into one
//! store's home millions of times a minute, and none has to wait for what only another one uses.

use std::ops::Deref;

/// Stands apart from its neighbours: 128 bytes, because processors fetch lines of 64 in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Apart<T>(T);

impl<T> Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
