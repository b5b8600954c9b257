//! Reads: one object, one page, a whole list.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use super::ApiFuture;
use super::decode::{self, Decoder};
use super::draft::Draft;
use super::pages::ListStream;
use crate::error::{Error, ErrorKind};
use crate::resource::Resource;

/// Objects a page when nobody asks for a size; client-go's pager asks for as many.
const PAGE: u32 = 500;

/// A read of one object about to be sent; await it.
///
/// # Errors
/// [`NotFound`](ErrorKind::NotFound) when there is none, and those of
/// [`Client::send`](crate::client::Client::send).
/// # Cancel safety
/// Dropping it cancels the request.
#[must_use = "a request does nothing until it is awaited"]
pub struct Get<T> {
    draft: Draft,
    decode: Decoder<T>,
}

impl<T> Get<T> {
    pub(crate) fn new(draft: Draft, decode: Decoder<T>) -> Self {
        Self { draft, decode }
    }

    /// Not older than this version; `0` takes whatever the server has at hand. Default: the newest.
    pub fn resource_version(mut self, version: &str) -> Self {
        self.draft.set("resourceVersion", version);
        self
    }

    /// Total time for it with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Sends it; `None` when there is no such object.
    ///
    /// # Errors
    /// Those of [`Client::send`](crate::client::Client::send), without `NotFound`.
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

/// How the version of a list request is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a newer one.
    NotOlderThan,
}

/// A page or a whole list.
#[derive(Clone, Debug)]
pub struct ObjectList<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The version of the collection that this shows.
    pub resource_version: String,
    /// Token of the next page; `None` on the last one.
    pub continue_token: Option<String>,
    /// So many objects follow on later pages, about. Servers tell it for lists without selectors.
    pub remaining: Option<u64>,
}

/// A list about to be requested; await it for the whole, or [`stream`](Self::stream) it.
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send); [`Decode`](ErrorKind::Decode) names an
/// object that does not decode.
/// # Cancel safety
/// Dropping it cancels the request under way.
#[must_use = "a request does nothing until it is awaited"]
pub struct List<K> {
    draft: Draft,
    one_page: bool,
    page_size: u32,
    decode: Decoder<ObjectList<K>>,
}

impl<K: Resource> List<K> {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, one_page: false, page_size: PAGE, decode: decode::list }
    }

    /// The objects one by one, read page by page as they are taken; see [`ListStream`].
    pub fn stream(self) -> ListStream<K> {
        ListStream::new(self.draft, self.page_size)
    }
}

impl<K> List<K> {
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

    /// One page of at most so many objects; the answer's
    /// [`continue_token`](ObjectList::continue_token) leads to the next.
    pub fn limit(mut self, limit: u32) -> Self {
        self.one_page = true;
        self.page_size = limit;
        self.set("limit", limit.to_string())
    }

    /// The page after an earlier one.
    pub fn continue_token(mut self, token: &str) -> Self {
        self.one_page = true;
        self.set("continue", token)
    }

    /// Objects a page of a whole list or of a stream. Default: 500.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page_size = objects.max(1);
        self
    }

    /// Not older than this version; `0` takes whatever the server has at hand. Default: the newest.
    pub fn resource_version(self, version: &str) -> Self {
        self.set("resourceVersion", version)
    }

    /// At this version, or not older than it, as `how` says.
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
    /// Follows the pages to the end. When a token expires on the way, starts anew without pages: a
    /// whole list shows one version.
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
                    if list.continue_token.as_ref() == Some(&token) {
                        return Err(first.repeated_token());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Expired => {
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
