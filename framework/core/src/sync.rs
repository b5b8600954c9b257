//! Synchronization primitives of threads and tasks: a lock, a counter, a notification for tasks,
//! and a value that tasks wait on.
//!
//! Code that hands work between tasks takes these types from here and from nowhere else, so that
//! `tests/models` can compile the same source against primitives that try every interleaving.
//!
//! There are no condition variables: all waiters are tasks, and a woken task reads the state again
//! under a lock.
//!
//! Lock order: none of these types takes a lock while holding another, and a closure that is passed
//! to [`OrderedWatch`] runs under the lock of the watched value and must not wait for another lock.

mod ordered_watch;
mod sharded_rw_lock;

#[doc(hidden)]
pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

// A processor that writes a byte of a cache line takes the line away from all others, which costs
// as much as a lock: values that different workers write stand on lines of their own.
#[doc(hidden)]
pub use crossbeam_utils::CachePadded;
#[doc(hidden)]
pub use parking_lot::Mutex;
#[doc(hidden)]
pub use tokio::sync::Notify;

#[doc(hidden)]
pub use self::ordered_watch::OrderedWatch;
#[doc(hidden)]
pub use self::sharded_rw_lock::ShardedRwLock;
