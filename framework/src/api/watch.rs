//! Watches of one connection, typed. Informers do not build on this: they resume, and decode late.

use std::borrow::Cow;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ApiFuture;
use super::decode::decode_item;
use super::draft::{Draft, Target};
use crate::client::ByteStream;
use crate::error::{ApiStatus, Error, ErrorKind};
use crate::resource::Resource;

/// Longest event that is read.
const FRAME_LIMIT: usize = 16 << 20;
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent<K> {
    /// The object is new, or was there when the watch began.
    Added(K),
    /// The object changed.
    Modified(K),
    /// The object is gone; this is its last state.
    Deleted(K),
    /// Nothing changed up to this version.
    Bookmark {
        /// Watching again from here misses nothing.
        resource_version: String,
        /// Were all objects that there were at the beginning sent?
        initial_events_end: bool,
    },
}

/// A watch about to be started; await it.
#[must_use = "a request does nothing until it is awaited"]
pub struct Watch<K> {
    draft: Draft,
    _kind: PhantomData<fn() -> K>,
}

impl<K> Watch<K> {
    pub(crate) fn new(mut draft: Draft) -> Self {
        draft.set("watch", "true");
        draft.set("allowWatchBookmarks", "true");
        Self { draft, _kind: PhantomData }
    }

    fn set(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.draft.set(key, value);
        self
    }

    /// Label selector, in kubectl's notation.
    pub fn labels(self, selector: &str) -> Self {
        self.set("labelSelector", selector)
    }

    /// Field selector.
    pub fn fields(self, selector: &str) -> Self {
        self.set("fieldSelector", selector)
    }

    /// Events after this version. Default: every object as it is now, then what follows.
    pub fn resource_version(self, version: &str) -> Self {
        self.set("resourceVersion", version)
    }

    /// The server ends the watch after this time, in whole seconds. Default: the server's choice.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set("timeoutSeconds", timeout.as_secs().to_string())
    }
}

impl<K: Resource> IntoFuture for Watch<K> {
    type Output = Result<WatchStream<K>, Error>;
    type IntoFuture = ApiFuture<'static, WatchStream<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let target = self.draft.target.clone();
            let request = self.draft.finish()?;
            let what = request.what.clone();
            let bytes = target.client.stream(request).await?;
            Ok(WatchStream {
                bytes: Some(bytes),
                buffer: Vec::new(),
                scanned: 0,
                what,
                target,
                _kind: PhantomData,
            })
        })
    }
}

impl<K> fmt::Debug for Watch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("draft", &self.draft).finish_non_exhaustive()
    }
}

/// A running watch. Dropping it ends it.
pub struct WatchStream<K> {
    /// `None` after the end.
    bytes: Option<ByteStream>,
    buffer: Vec<u8>,
    /// So much of the buffer holds no line end.
    scanned: usize,
    what: String,
    target: Arc<Target>,
    _kind: PhantomData<fn() -> K>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

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
    /// The next event; `None` when the server ended the watch, and after a broken connection or an
    /// error event.
    ///
    /// # Errors
    /// [`Expired`](ErrorKind::Expired) when the version is too old;
    /// [`Decode`](ErrorKind::Decode) for an object that does not decode: the next one follows;
    /// [`Transport`](ErrorKind::Transport) when the connection broke.
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next(&mut self) -> Option<Result<WatchEvent<K>, Error>> {
        loop {
            if let Some(line) = self.take_line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(self.event(&line));
            }
            if self.buffer.len() > FRAME_LIMIT {
                self.bytes = None;
                let mebibytes = FRAME_LIMIT >> 20;
                let text = format!("cannot {}: an event is larger than {mebibytes} MiB", self.what);
                self.buffer.clear();
                return Some(Err(Error::new(ErrorKind::Decode, text)));
            }
            match self.bytes.as_mut()?.next().await {
                Some(Ok(bytes)) => self.buffer.extend_from_slice(&bytes),
                Some(Err(error)) => {
                    self.bytes = None;
                    return Some(Err(error));
                }
                None => {
                    // What is left is half an event: never delivered.
                    self.bytes = None;
                    return None;
                }
            }
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let found = self.buffer[self.scanned..].iter().position(|&byte| byte == b'\n');
        let Some(found) = found else {
            self.scanned = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(self.scanned + found + 1);
        self.scanned = 0;
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    fn event(&mut self, line: &[u8]) -> Result<WatchEvent<K>, Error> {
        let undecodable = |error: serde_json::Error| {
            let text = format!("cannot {}: an event does not decode: {error}", self.what);
            Error::new(ErrorKind::Decode, text).because(error)
        };
        let frame: Frame<'_> = serde_json::from_slice(line).map_err(undecodable)?;
        let text = frame.object.get();
        let object = || decode_item(&self.what, text, &self.target.info);
        match &*frame.kind {
            "ADDED" => object().map(WatchEvent::Added),
            "MODIFIED" => object().map(WatchEvent::Modified),
            "DELETED" => object().map(WatchEvent::Deleted),
            "BOOKMARK" => {
                let mark: Mark = serde_json::from_str(text).map_err(undecodable)?;
                let ended = mark.metadata.annotations.get(INITIAL_EVENTS_END);
                Ok(WatchEvent::Bookmark {
                    initial_events_end: ended.is_some_and(|value| value == "true"),
                    resource_version: mark.metadata.resource_version,
                })
            }
            "ERROR" => {
                let status: ApiStatus = serde_json::from_str(text).unwrap_or_default();
                self.bytes = None;
                self.buffer.clear();
                Err(Error::from_status(&self.what, status))
            }
            other => {
                let text = format!("cannot {}: `{other}` is no type of event", self.what);
                Err(Error::new(ErrorKind::Decode, text))
            }
        }
    }
}

impl<K> fmt::Debug for WatchStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchStream")
            .field("what", &self.what)
            .field("open", &self.bytes.is_some())
            .finish_non_exhaustive()
    }
}
