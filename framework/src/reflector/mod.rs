//! Reflectors: keep one kind in one scope up to date with its source by list, watch, resume and
//! relist.
//!
//! The first view and each later list is a consistent read, by a streaming list if the server
//! supports that and by pages otherwise. No answer of the server is fatal: each failure is
//! classified (`setback`) and answered by resuming, by listing again, or by waiting.
//!
//! A [`Reflector`] reads from a [`ListWatch`] and fills a [`Target`]. Informers consist of
//! reflectors; a single one keeps a [`Store`](crate::store::Store) or any other target up to date.
//! A [`Pager`] is a list without a watch.
//!
//! A reflector knows no listeners and decodes no object.

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

/// A request without any data for this long has failed.
const NO_PROGRESS: Duration = Duration::from_secs(30);
/// Longest pause that a server can ask for by `Retry-After`.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Time after which a partially read list is made again.
const IN_PART_PAUSE: Duration = Duration::from_secs(300);
/// Number of broken streaming lists in a row after which one list in pages is tried.
const MOST_BROKEN_STREAMS: u32 = 2;
/// Number of failed lists in a row after which the reflector is degraded.
const MOST_FAILED_LISTS: u32 = 5;
