//! Helpers of tests, of this module and of others.

mod capture;
mod counting;

pub(crate) use capture::Captured;
pub(crate) use counting::Counting;
