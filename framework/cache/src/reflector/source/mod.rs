//! Sources of a reflector: an API server, or any system that answers like an API server.
//!
//! Requests and bodies are those of the Kubernetes API, so that a source need not translate: an API
//! server's bytes reach the parser as they came.

mod api;
mod page;
mod pager;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use windlass_client::client::{ByteStream, Verb, at_once};
use windlass_core::error::Error;
use windlass_core::resource::ResourceInfo;

pub use api::ApiSource;
pub(super) use page::{PageReader, open};
pub use pager::{Page, Pager, Pages};

/// A request whose body is about to be opened.
pub type OpenFuture<'a> = Pin<Box<dyn Future<Output = Result<Chunks, Error>> + Send + 'a>>;

/// A query whether the kind is served.
pub type ServedFuture<'a> = Pin<Box<dyn Future<Output = Served> + Send + 'a>>;

/// Lists and watches a kind in a single scope.
///
/// The bodies are those of the Kubernetes API: a list is a single JSON object with `metadata` and
/// `items`, a watch one JSON object with `type` and `object` per line.
/// [`ApiSource`](super::ApiSource) reads an API server; [`MemorySource`](super::MemorySource) is an
/// API server in memory for tests, and for systems that are not API servers. A custom source sends
/// pieces through a channel:
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use windlass::reflector::{Chunks, ListWatch, OpenFuture, Read};
///
/// /// A kind of which there is nothing.
/// #[derive(Debug)]
/// struct Nothing;
///
/// impl ListWatch for Nothing {
///     fn open(&self, read: Read) -> OpenFuture<'_> {
///         let body = match read {
///             Read::Page { .. } => r#"{"metadata":{"resourceVersion":"1"},"items":[]}"#,
///             // Closed at once.
///             Read::StreamingList { .. } | Read::Watch { .. } => "",
///         };
///         Box::pin(async move { Ok(Chunks::of([body])) })
///     }
///
///     fn streams_lists(&self) -> bool {
///         false
///     }
/// }
/// ```
pub trait ListWatch: Debug + Send + Sync + 'static {
    /// Sends the request; the body streams. Error answers are returned as errors
    /// ([`Error::from_status`]); they determine the reflector's next step. Dropping the future must
    /// end the request.
    fn open(&self, read: Read) -> OpenFuture<'_>;

    /// Returns whether the kind is served. Called every 2.5 to 5 s while the source answers 404.
    /// The default is [`Served::Unknown`], for which the list is tried instead. Cached objects are
    /// given up at once when the answer is [`Served::No`], and otherwise when the source has
    /// answered 404 for 10 s.
    fn is_served(&self) -> ServedFuture<'_> {
        Box::pin(async { Served::Unknown })
    }

    /// Returns whether the source can answer [`Read::StreamingList`]. True by default; a source
    /// that cannot is listed in pages from the first request on.
    fn streams_lists(&self) -> bool {
        true
    }
}

/// Whether a kind is served.
///
/// `Unknown` alone never gives objects up: only a 404 that lasts does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The kind is served.
    Yes,
    /// The kind is not served.
    No,
    /// Not known without a list.
    Unknown,
}

/// A body that arrives in pieces. A drop ends the request.
#[derive(Debug)]
pub struct Chunks(BodySource);

/// Origin of a body.
#[derive(Debug)]
enum BodySource {
    /// From the API server.
    Http(ByteStream),
    /// From a task of this process.
    Channel(mpsc::Receiver<Result<Bytes, Error>>),
    /// All pieces are in memory.
    Ready(std::vec::IntoIter<Bytes>),
}

impl From<ByteStream> for Chunks {
    fn from(stream: ByteStream) -> Self {
        Self(BodySource::Http(stream))
    }
}

/// The body ends when the sender is dropped. An error ends the body, too.
impl From<mpsc::Receiver<Result<Bytes, Error>>> for Chunks {
    fn from(receiver: mpsc::Receiver<Result<Bytes, Error>>) -> Self {
        Self(BodySource::Channel(receiver))
    }
}

impl Chunks {
    /// Returns a complete body, in these pieces.
    pub fn of<B: Into<Bytes>>(pieces: impl IntoIterator<Item = B>) -> Self {
        let pieces: Vec<Bytes> = pieces.into_iter().map(Into::into).collect();
        Self(BodySource::Ready(pieces.into_iter()))
    }

    /// Returns the next piece; `None` at the end.
    ///
    /// # Errors
    /// The source's error; nothing follows it.
    /// # Cancel safety
    /// Safe: no piece is lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        match &mut self.0 {
            BodySource::Http(stream) => stream.next().await,
            BodySource::Channel(receiver) => receiver.recv().await,
            BodySource::Ready(pieces) => pieces.next().map(Ok),
        }
    }
}

impl Chunks {
    /// Returns the result of [`next`](Self::next), if available at once: `None` when the caller
    /// would have to wait, `Some(None)` at the end of the body.
    pub(super) async fn at_once(&mut self) -> Option<Option<Result<Bytes, Error>>> {
        match &mut self.0 {
            BodySource::Http(stream) => stream.at_once().await,
            BodySource::Channel(receiver) => at_once(receiver.recv()).await,
            BodySource::Ready(pieces) => Some(pieces.next().map(Ok)),
        }
    }
}

/// A request of a reflector.
///
/// Versions are opaque texts, never empty unless a variant allows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// A list, or a page of a list.
    Page {
        /// `None` asks for a consistent read; `"0"` for any state that the server has in memory;
        /// any other version for a state that is not older. `None` on later pages.
        resource_version: Option<String>,
        /// Items per page; `None` means the whole list.
        limit: Option<u32>,
        /// Token that the previous page returned.
        continue_token: Option<String>,
    },
    /// The current state as ADDED events, a bookmark that ends this state, then changes, on a
    /// single stream.
    StreamingList {
        /// As in [`Page`](Self::Page).
        resource_version: Option<String>,
        /// Time after which the server is to end the stream.
        timeout: Duration,
    },
    /// Changes after a version.
    Watch {
        /// The version after which changes are sent.
        resource_version: String,
        /// Time after which the server is to end the stream.
        timeout: Duration,
    },
}

impl Read {
    /// Returns the query parameters of the request.
    pub fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        let mut add = |name, value: &str| query.push((name, value.to_owned()));
        match self {
            Self::Page { resource_version, limit, continue_token } => {
                if let Some(limit) = limit {
                    add("limit", &limit.to_string());
                }
                if let Some(token) = continue_token {
                    add("continue", token);
                }
                if let Some(version) = resource_version {
                    add("resourceVersion", version);
                    add("resourceVersionMatch", "NotOlderThan");
                }
            }
            Self::StreamingList { resource_version, timeout } => {
                add("watch", "true");
                add("allowWatchBookmarks", "true");
                add("sendInitialEvents", "true");
                // Without a version this is a consistent read.
                add("resourceVersionMatch", "NotOlderThan");
                if let Some(version) = resource_version {
                    add("resourceVersion", version);
                }
                add("timeoutSeconds", &timeout.as_secs().to_string());
            }
            Self::Watch { resource_version, timeout } => {
                add("watch", "true");
                add("allowWatchBookmarks", "true");
                add("resourceVersion", resource_version);
                add("timeoutSeconds", &timeout.as_secs().to_string());
            }
        }
        query
    }

    /// Returns the verb that a role must grant: a streaming list is a watch.
    pub fn verb(&self) -> Verb {
        match self {
            Self::Page { .. } => Verb::List,
            Self::StreamingList { .. } | Self::Watch { .. } => Verb::Watch,
        }
    }
}

/// Describes a request for error texts: `watch deployments.apps in "shop"`.
pub(crate) fn describe_request(verb: Verb, info: &ResourceInfo, namespace: Option<&str>) -> String {
    let verb = verb.as_str();
    match namespace {
        Some(namespace) => format!("{verb} {info} in {namespace:?}"),
        None => format!("{verb} {info}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B7: the first view is a consistent read.
    #[test]
    fn b7_a_request_without_a_version_asks_for_a_consistent_read() {
        let timeout = Duration::from_secs(300);
        let page = |resource_version: Option<&str>| Read::Page {
            resource_version: resource_version.map(str::to_owned),
            limit: Some(500),
            continue_token: None,
        };
        for read in [
            page(None),
            Read::Page {
                resource_version: None,
                limit: None,
                continue_token: Some("t".to_owned()),
            },
            Read::StreamingList { resource_version: None, timeout },
        ] {
            assert!(!read.query().iter().any(|(name, _)| *name == "resourceVersion"), "{read:?}");
        }
        let any = page(Some("0")).query();
        assert!(any.contains(&("resourceVersion", "0".to_owned())), "{any:?}");
        assert!(any.contains(&("resourceVersionMatch", "NotOlderThan".to_owned())), "{any:?}");
        let watch = Read::Watch { resource_version: "7".to_owned(), timeout };
        assert!(watch.query().contains(&("resourceVersion", "7".to_owned())));
        assert!(watch.query().contains(&("allowWatchBookmarks", "true".to_owned())));
    }

    #[test]
    fn a_streaming_list_needs_the_verb_watch() {
        let timeout = Duration::from_secs(300);
        let read = Read::StreamingList { resource_version: None, timeout };
        assert_eq!(read.verb(), Verb::Watch);
        let read = Read::Page { resource_version: None, limit: None, continue_token: None };
        assert_eq!(read.verb(), Verb::List);
    }

    #[test]
    fn an_error_says_which_verb_was_tried_on_what_and_where() {
        let info = ResourceInfo::of::<k8s_openapi::api::apps::v1::Deployment>();
        assert_eq!(
            describe_request(Verb::Watch, &info, Some("shop")),
            r#"watch deployments.apps in "shop""#
        );
        assert_eq!(describe_request(Verb::List, &info, None), "list deployments.apps");
    }
}
