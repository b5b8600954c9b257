//! Typed watches, of a single connection, or across several (`resume`). Informers do not use these
//! watches: an informer lists, too, and decodes late.

mod pause;
mod resume;
mod rollback;
mod version;

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::api::ApiFuture;
use crate::api::decode;
use crate::api::draft::{ApiTarget, Draft};
use crate::client::{RawEvent, RawWatch};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::Resource;
use windlass_core::wire::{EventType, Undecodable};

pub(in crate::api) use pause::passes;
pub use resume::ResumingWatch;
pub(in crate::api) use version::compare;

/// Annotation of the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// An event of a watch.
///
/// The server's `ERROR` events are errors of [`WatchStream::next`].
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<K> {
    /// The object is new, or existed when the watch began.
    Added(K),
    /// The object changed.
    Modified(K),
    /// The object is gone; the value is the last state.
    Deleted(K),
    /// Nothing changed up to this version.
    Bookmark {
        /// A watch from this version misses nothing.
        resource_version: String,
        /// Whether this bookmark ends the objects that existed at the beginning.
        initial_events_end: bool,
    },
}

/// A watch, started when awaited.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let maps = client.namespace::<ConfigMap>("shop");
/// let list = maps.list().await?;
/// let mut events = maps
///     .watch()
///     .resource_version(&list.resource_version)
///     .timeout(Duration::from_secs(300))
///     .await?;
/// while let Some(event) = events.next().await {
///     println!("{:?}", event?);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Client::stream`](crate::client::Client::stream). A server that is reached and does
/// not answer gives a stream that ends at once; a version that is too old is an error of the first
/// event.
/// # Cancel safety
/// Dropping the future cancels the request.
#[must_use = "a request does nothing until it is awaited"]
pub struct Watch<K> {
    draft: Draft,
    /// Largest event in bytes; `None` for the decoder's default.
    frame_limit: Option<usize>,
    _kind: PhantomData<fn() -> K>,
}

impl<K> Watch<K> {
    pub(crate) fn new(mut draft: Draft) -> Self {
        draft.set("watch", "true");
        // Bookmarks advance the version while no object changes.
        draft.set("allowWatchBookmarks", "true");
        Self { draft, frame_limit: None, _kind: PhantomData }
    }

    fn set(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.draft.set(key, value);
        self
    }

    /// Selects by labels, in kubectl's notation.
    ///
    /// An object that stops matching is shown as [`Deleted`](WatchEvent::Deleted).
    pub fn labels(self, selector: &str) -> Self {
        self.set("labelSelector", selector)
    }

    /// Selects by fields.
    pub fn fields(self, selector: &str) -> Self {
        self.set("fieldSelector", selector)
    }

    /// Starts with events after this version. Default: every object in the current state, then
    /// later changes.
    ///
    /// `0` starts at any version of the server's cache, with every object in the cached state.
    pub fn resource_version(self, version: &str) -> Self {
        self.set("resourceVersion", version)
    }

    /// Sends every object in the current state, then a bookmark that ends the initial events
    /// ([`initial_events_end`](WatchEvent::Bookmark::initial_events_end)), then later changes: a
    /// list and a watch in one. Servers before 1.32 may not support this option, and refuse the
    /// watch as `Invalid`.
    ///
    /// Default: off. The feature `WatchList` of the server.
    pub fn initial_events(self) -> Self {
        self.set("sendInitialEvents", "true").set("resourceVersionMatch", "NotOlderThan")
    }

    /// Time up to the beginning of the answer. Default: the client's, 30 s.
    pub fn open_within(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Time after which the server ends the watch, in whole seconds. Default: the server's choice.
    ///
    /// The end is regular: [`WatchStream::next`] returns `None`.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set("timeoutSeconds", timeout.as_secs().to_string())
    }

    /// Largest event in bytes; a larger event becomes an error, and the next event follows.
    /// Default: 16 MiB, as client-go.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = Some(bytes);
        self
    }
}

impl<K: Resource> IntoFuture for Watch<K> {
    type Output = Result<WatchStream<K>, Error>;
    type IntoFuture = ApiFuture<'static, WatchStream<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let target = self.draft.target.clone();
            let (what, mut raw) = self.draft.watch().await?;
            if let Some(bytes) = self.frame_limit {
                raw = raw.limited(bytes);
            }
            Ok(WatchStream { raw, what, target, _kind: PhantomData })
        })
    }
}

impl<K> fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("draft", &self.draft).finish_non_exhaustive()
    }
}

/// A running watch. Dropping the stream ends the request.
///
/// Events are read on demand: a slow reader slows the server down, and the server disconnects a
/// reader that is slow for too long.
pub struct WatchStream<K> {
    raw: RawWatch,
    /// Attempted operation, for error texts.
    what: String,
    target: Arc<ApiTarget>,
    _kind: PhantomData<fn() -> K>,
}

/// The content of a bookmark.
#[derive(Deserialize)]
struct Mark {
    metadata: MarkMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MarkMeta {
    resource_version: String,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

impl<K: Resource> WatchStream<K> {
    /// Returns the next event; `None` when the server ended the watch, and after every error but
    /// [`Decode`](ErrorKind::Decode).
    ///
    /// # Errors
    /// [`Expired`](ErrorKind::Expired) when the version is too old, and any other error event of
    /// the server; [`Decode`](ErrorKind::Decode) for an object that does not decode: the next event
    /// follows; [`Transport`](ErrorKind::Transport) when the connection broke;
    /// [`Timeout`](ErrorKind::Timeout) when nothing came for 30 s longer than the requested
    /// duration of the watch (an hour if none was requested), or an event that had begun did not
    /// end within 30 s.
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        Some(self.raw.next().await?.and_then(|event| self.event(&event)))
    }

    /// The error of an event that does not decode.
    fn undecodable(&self, why: impl fmt::Display) -> Error {
        let text = format!("cannot {}: an event does not decode: {why}", self.what);
        Error::new(ErrorKind::Decode, text)
    }

    /// Decodes an event of the wire.
    fn event(&self, event: &RawEvent) -> Result<WatchEvent<K>, Error> {
        let text = std::str::from_utf8(&event.object).map_err(|error| self.undecodable(error))?;
        let object = || decode::item(&self.what, text, &self.target.info);
        match event.kind {
            EventType::Added => object().map(WatchEvent::Added),
            EventType::Modified => object().map(WatchEvent::Modified),
            EventType::Deleted => object().map(WatchEvent::Deleted),
            EventType::Bookmark => {
                let mark: Mark = serde_json::from_str(text).map_err(|error| {
                    self.undecodable(Undecodable::explain::<Mark>(text.as_bytes(), &error))
                })?;
                let ended = mark.metadata.annotations.get(INITIAL_EVENTS_END);
                Ok(WatchEvent::Bookmark {
                    initial_events_end: ended.is_some_and(|value| value == "true"),
                    resource_version: mark.metadata.resource_version,
                })
            }
            _ => Err(self.undecodable("its type is unknown")),
        }
    }
}

impl<K> fmt::Debug for WatchStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream").field("raw", &self.raw).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
