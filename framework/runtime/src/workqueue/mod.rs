//! A set of keys, each worked on by a single worker at a time.
//!
//! Producers add keys and workers take them. Several adds of a key between two takes lead to a
//! single attempt. A key that is added while in work becomes ready again once that work has ended,
//! and a key whose work failed becomes ready again after a growing delay. A queue holds at most one
//! entry per key, so the number of keys bounds the size. The entry of an idle key stays allocated,
//! and the key too, until [`Work::gone`] frees the entry or another key needs it. The queue retains
//! 4096 entries, 131,072 where the keys are those of [objects](WorkQueue::of_objects), or as many
//! as were once in use at the same time.
//!
//! ```
//! # extern crate windlass_runtime as windlass;
//! # use windlass::{environment::Environment, workqueue::{QueueSettings, WorkQueue}};
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let queue = WorkQueue::new(QueueSettings::new("sites"), &Environment::system());
//! queue.add("home");
//! queue.add("home");
//! let work = queue.get().await.expect("not shut down");
//! assert_eq!(*work.key(), "home");
//! work.done();
//! assert_eq!(queue.counts().queued, 0);
//! # });
//! ```
//!
//! An add can carry a priority and reasons ([`AddOptions`]). Changes go before the keys that a
//! start or a resync adds, and no key is passed over for ever.
//!
//! Out of scope: the meaning of a key or a reason, and dropping keys because there are too many.

mod add_buffer;
mod add_options;
mod backoff;
mod core;
mod describe;
mod meter;
mod queue;
mod settings;
mod state;
mod waiters;
mod work;

pub use add_options::{AddOptions, Priority};
pub use backoff::RetryPolicy;
pub use core::QueueCounts;
pub(crate) use core::SlotHint;
pub use describe::{KeyStage, KeyState};
pub use queue::WorkQueue;
pub use settings::QueueSettings;
pub use work::Work;

#[cfg(test)]
mod tests;
