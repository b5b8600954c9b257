//! Functions for the derive macros and for benchmarks behind the public API. Not public API: they
//! may change in any release.

pub mod cache;
pub mod probe;
#[cfg(test)]
mod tests;

pub use windlass_runtime::__private::*;
