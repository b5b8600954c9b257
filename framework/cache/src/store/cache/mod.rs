//! The untyped store: the locks, and the reads and changes that callers may make.

mod apply;
mod convert;
mod core;
mod indexing;
mod invalid;
mod own_writes;
mod reads;
mod stats;

pub use core::StoreCore;
pub(in crate::store) use reads::ReadTime;
pub use stats::Sizes;
pub use stats::StoreStats;
