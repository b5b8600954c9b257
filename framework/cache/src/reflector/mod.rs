//! Reflectors: keep a kind in a single scope up to date with the source by list, watch, resume and
//! relist.
//!
//! The first view and each later list is a consistent read, by a streaming list if the server
//! supports that and by pages otherwise. No answer of the server is fatal: each failure is
//! classified (`AttemptEnd`) and answered by resuming, by listing again, or by waiting.
//!
//! A [`Reflector`] reads from a [`ListWatch`] and fills a [`ReflectorSink`]. Informers consist of
//! reflectors; a single reflector keeps a [`Store`](crate::store::Store) or any other target up to
//! date. A [`Pager`] is a list without a watch.
//!
//! A reflector knows no listeners and decodes no object. The decisions are in `machine`, which has
//! no I/O; the other files send the requests, read the bytes and report the results.
//!
//! | failure | answer |
//! |---|---|
//! | 410, or a compacted version | list anew |
//! | connection broken, 5xx, 429 | resume after a pause; `Retry-After` counts |
//! | 401, 403 | retry with pauses, and name the missing right |
//! | 404 | look for the kind; give the kind's objects up when the kind is certainly not served |
//! | an object that is too large | keep the object's last state |
//! | a panic of the source | count the panic as a failed attempt |

mod absence;
mod capabilities;
mod expect;
mod finish_attempt;
mod list;
mod machine;
mod memory;
mod options;
#[expect(clippy::module_inception, reason = "the module is named after its type")]
mod reflector;
mod rollback;
mod sink;
mod source;
mod status;
mod stream;
mod subject;
#[cfg(test)]
pub(crate) mod test_support;
#[cfg(test)]
mod tests;
mod version_read;
mod watch;

use std::time::Duration;

pub use memory::{MemoryResponse, MemorySource};
pub use options::ReflectorOptions;
pub use reflector::{Reflector, ReflectorError};
pub use sink::{RawObject, ReflectorSink, StoreTarget, StreamProgress};
pub use source::{
    ApiSource, Chunks, ListWatch, OpenFuture, Page, Pager, Pages, Read, Served, ServedFuture,
};
pub use status::{Freshness, ReflectorState, ReflectorStatus};

pub(crate) use capabilities::ServerCapabilities;
pub(crate) use reflector::ReflectorDeps;
pub(crate) use sink::{BatchSink, DeltaWriter, StoreApplyQueue, StoreDelta};

/// A request without any data for this long has failed.
const NO_PROGRESS: Duration = Duration::from_secs(30);
