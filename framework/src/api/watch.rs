//! Watches of one connection, typed. Informers do not build on this: they resume, and decode late.

use std::collections::VecDeque;
use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::ApiFuture;
use super::decode::decode_item;
use super::draft::{Draft, Target};
use crate::client::ByteStream;
use crate::error::{Error, ErrorKind};
use crate::resource::Resource;
use crate::wire::{EventType, Frame, FrameDecoder, Part};

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
    splitter: FrameDecoder,
    _kind: PhantomData<fn() -> K>,
}

impl<K> Watch<K> {
    pub(crate) fn new(mut draft: Draft) -> Self {
        draft.set("watch", "true");
        draft.set("allowWatchBookmarks", "true");
        Self { draft, splitter: FrameDecoder::new(), _kind: PhantomData }
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

    /// Largest event in bytes; a larger one is an error of its own, and the next follows. Default:
    /// 16 MiB, as client-go.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.splitter = FrameDecoder::with_limit(bytes);
        self
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
                splitter: self.splitter,
                ready: VecDeque::new(),
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
    splitter: FrameDecoder,
    /// Complete events of the last piece; `None` stands for one that was too large to keep.
    ready: VecDeque<Option<Vec<u8>>>,
    what: String,
    target: Arc<Target>,
    _kind: PhantomData<fn() -> K>,
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
            match self.ready.pop_front() {
                Some(Some(line)) => return Some(self.event(&line)),
                Some(None) => return Some(Err(self.too_large())),
                None => {}
            }
            match self.bytes.as_mut()?.next().await {
                Some(Ok(bytes)) => {
                    let ready = &mut self.ready;
                    self.splitter.push(&bytes, &mut |part| {
                        ready.push_back(match part {
                            Part::Whole(line) => Some(line.to_vec()),
                            Part::TooLarge(_) => None,
                        });
                    });
                }
                Some(Err(error)) => {
                    self.bytes = None;
                    return Some(Err(error));
                }
                None => {
                    // What the splitter still holds is half an event: never delivered.
                    self.bytes = None;
                    return None;
                }
            }
        }
    }

    fn too_large(&self) -> Error {
        self.undecodable(format_args!("it is larger than {} bytes", self.splitter.limit()))
    }

    fn undecodable(&self, why: impl fmt::Display) -> Error {
        let text = format!("cannot {}: an event does not decode: {why}", self.what);
        Error::new(ErrorKind::Decode, text)
    }

    fn event(&mut self, line: &[u8]) -> Result<WatchEvent<K>, Error> {
        let frame = Frame::of(line).map_err(|error| self.undecodable(error))?;
        if frame.event == EventType::Error {
            self.bytes = None;
            self.ready.clear();
            return Err(Error::from_status(&self.what, frame.status()));
        }
        let text = std::str::from_utf8(frame.object).map_err(|error| self.undecodable(error))?;
        let object = || decode_item(&self.what, text, &self.target.info);
        match frame.event {
            EventType::Added => object().map(WatchEvent::Added),
            EventType::Modified => object().map(WatchEvent::Modified),
            EventType::Deleted => object().map(WatchEvent::Deleted),
            EventType::Bookmark => {
                let mark: Mark =
                    serde_json::from_str(text).map_err(|error| self.undecodable(error))?;
                let ended = mark.metadata.annotations.get(INITIAL_EVENTS_END);
                Ok(WatchEvent::Bookmark {
                    initial_events_end: ended.is_some_and(|value| value == "true"),
                    resource_version: mark.metadata.resource_version,
                })
            }
            EventType::Error | EventType::Unknown => Err(self.undecodable("its type is unknown")),
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

#[cfg(test)]
mod tests;
