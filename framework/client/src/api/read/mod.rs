//! Reads of a single object, a page or a whole list; watches, and waits for a state.

mod follow;
mod pages;
mod wait;
mod watch;

pub use pages::ListStream;
pub use wait::WaitCondition;
pub use watch::{ResumingWatch, Watch, WatchEvent, WatchStream};

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use super::ApiFuture;
use super::decode::{self, Decoder};
use super::draft::Draft;
use super::object_list::ObjectList;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::Resource;

/// Default number of objects on a page, as in client-go's pager.
const PAGE: u32 = 500;

/// A read of a single object, sent when awaited.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let pods = client.namespace::<Pod>("shop");
/// // From the server's cache: cheaper, and perhaps some milliseconds old.
/// let pod = pods.get("web-0").resource_version("0").timeout(Duration::from_secs(2)).await?;
/// println!("{:?}", pod.status);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) when the object does not exist, and those of
/// [`Client::send`](crate::client::Client::send).
/// # Cancel safety
/// Dropping the future cancels the request.
#[must_use = "a request does nothing until it is awaited"]
pub struct Get<T> {
    draft: Draft,
    decode: Decoder<T>,
}

impl<T> Get<T> {
    pub(crate) fn new(draft: Draft, decode: Decoder<T>) -> Self {
        Self { draft, decode }
    }

    /// Accepts no version older than this; `0` accepts any version of the server's cache. Default:
    /// the newest.
    ///
    /// For a version that the server does not reach in time [`Error::is_version_too_large`] holds.
    pub fn resource_version(mut self, version: &str) -> Self {
        self.draft.set("resourceVersion", version);
        self
    }

    /// Total time for the call with all retries. Default: the client's, 30 s.
    ///
    /// Zero selects the default again.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Sends the request; `None` when the object does not exist.
    ///
    /// A missing namespace or kind is `None`, too: the server answers each with 404.
    ///
    /// # Errors
    /// Those of [`Client::send`](crate::client::Client::send), without `NotFound`.
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn opt(self) -> Result<Option<T>, Error> {
        match self.draft.send(self.decode).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<T: 'static> IntoFuture for Get<T> {
    type Output = Result<T, Error>;
    type IntoFuture = ApiFuture<'static, T>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.draft.send(self.decode))
    }
}

impl<T> fmt::Debug for Get<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("draft", &self.draft).finish_non_exhaustive()
    }
}

/// Meaning of the version in a list request.
///
/// The API's `resourceVersionMatch`; see [`List::at_version`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a newer version.
    NotOlderThan,
}

/// A list, requested as a whole when awaited; or a [`stream`](Self::stream).
///
/// | call | requests | memory | version |
/// |---|---|---|---|
/// | awaited | one per page, 500 objects each | all objects | one |
/// | [`limit`](Self::limit), [`continue_token`](Self::continue_token) | one | one page | that of the first page |
/// | [`stream`](Self::stream) | one per page | one page | one, unless a token expires |
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let pods = client.all::<Pod>();
/// let mut page = pods.list().limit(100).await?;
/// while let Some(token) = page.continue_token.take() {
///     println!("{} Pods on this page", page.items.len());
///     page = pods.list().limit(100).continue_token(&token).await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send); [`Decode`](ErrorKind::Decode) names an
/// object that does not decode.
/// # Cancel safety
/// Dropping the future cancels the current request.
#[must_use = "a request does nothing until it is awaited"]
pub struct List<K> {
    draft: Draft,
    /// Whether the caller turns the pages.
    one_page: bool,
    page_size: u32,
    decode: Decoder<ObjectList<K>>,
}

impl<K: Resource> List<K> {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, one_page: false, page_size: PAGE, decode: decode::list }
    }

    /// Returns the objects in sequence, read page by page on demand; see [`ListStream`].
    ///
    /// The settings of this list apply to each page. Nothing is requested before the first poll.
    pub fn stream(self) -> ListStream<K> {
        ListStream::new(self.draft, self.page_size)
    }
}

impl<K> List<K> {
    fn set(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.draft.set(key, value);
        self
    }

    /// Selects by labels, in kubectl's notation.
    ///
    /// Such as `app=web,tier in (front,back),!canary`. A
    /// [`Selector`](windlass_core::resource::Selector) prints such a text. A later call replaces an
    /// earlier selector.
    pub fn labels(self, selector: &str) -> Self {
        self.set("labelSelector", selector)
    }

    /// Selects by fields.
    ///
    /// Such as `metadata.name=web` or, for Pods, `spec.nodeName=node-1`; the kind decides which
    /// fields are known, and others are a [`BadRequest`](ErrorKind::BadRequest). A later call
    /// replaces an earlier selector.
    pub fn fields(self, selector: &str) -> Self {
        self.set("fieldSelector", selector)
    }

    /// Reads a single page of at most `limit` objects; the answer's
    /// [`continue_token`](ObjectList::continue_token) leads to the next.
    ///
    /// Servers take 0 as no limit.
    pub fn limit(mut self, limit: u32) -> Self {
        self.one_page = true;
        self.page_size = limit;
        self.set("limit", limit.to_string())
    }

    /// Reads the page after an earlier page.
    ///
    /// Tokens expire after about five minutes, the server's compaction:
    /// [`Expired`](ErrorKind::Expired).
    pub fn continue_token(mut self, token: &str) -> Self {
        self.one_page = true;
        self.set("continue", token)
    }

    /// Objects on a page of a whole list or of a stream. Default: 500.
    ///
    /// The default is the page size of client-go's pager. 0 counts as 1: for the API server 0 would
    /// mean no limit. Smaller pages spare the server's memory and need more requests.
    pub fn page_size(mut self, objects: u32) -> Self {
        // For API servers, 0 is no limit.
        self.page_size = objects.max(1);
        self
    }

    /// Accepts no version older than this; `0` accepts any version of the server's cache. Default:
    /// the newest.
    pub fn resource_version(self, version: &str) -> Self {
        self.set("resourceVersion", version)
    }

    /// Reads exactly this version, or a version that is not older, according to `how`.
    ///
    /// An [exact](VersionMatch::Exact) version that the server has forgotten is
    /// [`Expired`](ErrorKind::Expired).
    pub fn at_version(self, version: &str, how: VersionMatch) -> Self {
        let how = match how {
            VersionMatch::Exact => "Exact",
            VersionMatch::NotOlderThan => "NotOlderThan",
        };
        self.set("resourceVersion", version).set("resourceVersionMatch", how)
    }

    /// Total time for a page with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }
}

impl<K: Resource> IntoFuture for List<K> {
    type Output = Result<ObjectList<K>, Error>;
    type IntoFuture = ApiFuture<'static, ObjectList<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            if self.one_page {
                return self.draft.send(self.decode).await;
            }
            self.every_page().await
        })
    }
}

impl<K: Resource> List<K> {
    /// Reads the pages to the end. After an expired token the read starts anew without pages: a
    /// whole list has a single version.
    async fn every_page(self) -> Result<ObjectList<K>, Error> {
        let (draft, decode) = (self.draft, self.decode);
        let mut first = draft.clone();
        first.set("limit", self.page_size.to_string());
        let mut list: ObjectList<K> = first.clone().send(decode).await?;
        while let Some(token) = list.continue_token.take() {
            match first.next_page(&token).send(decode).await {
                Ok(more) => {
                    list.items.extend(more.items);
                    list.continue_token = more.continue_token;
                    // A server that returns the token of the request would make the list endless.
                    if list.continue_token.as_ref() == Some(&token) {
                        return Err(first.repeated_token());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Expired => {
                    // Without a limit: a single answer has a single version.
                    return draft.send(decode).await;
                }
                Err(error) => return Err(error),
            }
        }
        list.remaining = None;
        Ok(list)
    }
}

impl<K> fmt::Debug for List<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("draft", &self.draft).finish_non_exhaustive()
    }
}
