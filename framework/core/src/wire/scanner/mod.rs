//! The JSON scanner: finds where values end and where members begin, and keeps no values.

pub(super) mod members;
pub(super) mod name;
pub(super) mod scan;
pub(super) mod simd;

pub use scan::Malformed;
