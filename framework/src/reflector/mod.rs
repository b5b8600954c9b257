//! Keeps one kind in one scope in step with its source: list, watch, resume, list again.
//!
//! The first view and each later one is a consistent read, by a streaming list where the server
//! speaks it and by pages otherwise. Nothing the server answers is fatal: each failure is judged
//! (`setback`) and answered by resuming, by listing again, or by waiting.
//!
//! A [`Reflector`] reads from a [`ListWatch`] and fills a [`Target`]. Informers are made of them;
//! one by itself keeps a [`Store`](crate::store::Store) or anything else in step. A [`Pager`] is a
//! list without a watch.
//!
//! It knows nothing of listeners and decodes no object.

mod absence;
mod answer;
mod api_source;
mod backoff;
mod doubt;
mod expect;
mod feed;
mod habits;
mod handoff;
mod list;
mod memory;
mod options;
mod page;
mod pager;
mod position;
#[expect(clippy::module_inception, reason = "the room is named after what it holds")]
mod reflector;
#[cfg(test)]
pub(crate) mod script;
mod setback;
mod source;
mod status;
mod stream;
mod target;
#[cfg(test)]
mod tests;
mod watch;

use std::time::Duration;

pub use api_source::ApiSource;
pub use memory::{Answer, MemorySource};
pub use options::ReflectorOptions;
pub use pager::{Page, Pager, Pages};
pub use reflector::{Reflector, Trouble};
pub use source::{Chunks, ListWatch, Opening, Read, Served, Serving};
pub use status::{Freshness, State, Status};
pub use target::{Seen, Step, StoreTarget, Target};

pub(crate) use feed::{Feed, Sink};
pub(crate) use habits::Habits;
pub(crate) use handoff::{Handoff, StoreDelta};
pub(crate) use reflector::Wiring;

/// A request that brought nothing for so long has failed.
const NO_PROGRESS: Duration = Duration::from_secs(30);
/// Longest pause that a server's `Retry-After` can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// A list that is complete in part only is made again after so long.
const IN_PART_PAUSE: Duration = Duration::from_secs(300);
/// After so many streaming lists that broke, one list in pages is tried.
const MOST_BROKEN_STREAMS: u32 = 2;
/// After so many lists that failed in a row, it is degraded.
const MOST_FAILED_LISTS: u32 = 5;
