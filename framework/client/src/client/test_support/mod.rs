//! Helpers of tests, of this module and of others.

mod capture;
mod counting;

#[doc(hidden)]
pub use capture::Captured;
#[doc(hidden)]
pub use counting::Counting;
