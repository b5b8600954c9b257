//! Reflectors: keep one kind in one scope up to date with its source by list, watch, resume and
//! relist.
//!
//! The first view and each later list is a consistent read, by a streaming list if the server
//! supports that and by pages otherwise. No answer of the server is fatal: each failure is
//! classified (`setback`) and answered by resuming, by listing again, or by waiting.
//!
//! A [`Reflector`] reads from a [`ListWatch`] and fills a [`ReflectorSink`]. Informers consist of
//! reflectors; a single one keeps a [`Store`](crate::store::Store) or any other target up to date.
//! A [`Pager`] is a list without a watch.
//!
//! A reflector knows no listeners and decodes no object.

mod absence;
mod api_source;
mod apply_queue;
mod attempt_end;
mod backoff;
mod capabilities;
mod delta_writer;
mod expect;
mod list;
mod memory;
mod next_action;
mod options;
mod page;
mod pager;
mod position;
#[expect(clippy::module_inception, reason = "the room is named after what it holds")]
mod reflector;
mod rollback;
#[cfg(test)]
pub(crate) mod script;
mod sink;
mod source;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod watch;

use std::time::Duration;

pub use api_source::ApiSource;
pub use memory::{Answer, MemorySource};
pub use options::ReflectorOptions;
pub use pager::{Page, Pager, Pages};
pub use reflector::{Reflector, ReflectorError};
pub use sink::{RawObject, ReflectorSink, StoreTarget, StreamProgress};
pub use source::{Chunks, ListWatch, Opening, Read, Served, Serving};
pub use status::{Freshness, State, Status};

pub(crate) use apply_queue::{ApplyQueue, StoreDelta};
pub(crate) use capabilities::ServerCapabilities;
pub(crate) use delta_writer::{BatchSink, DeltaWriter};
pub(crate) use reflector::ReflectorDeps;

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
