//! A list without a watch, page by page: bounded read-ahead, and a whole list when a continue token
//! expires.
//!
//! Reads a list as a [`Reflector`](crate::reflector::Reflector) does for a cache, for callers that
//! need only the list. [`Api::list`](windlass_client::api::Api::list) is more convenient for a
//! single kind on an API server; a [`Pager`] works on any source, keeps objects as bytes, and reads
//! ahead.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::page::PageReader;
use super::{ListWatch, Read};
use crate::reflector::options::PAGE;
use crate::reflector::{RawObject, ReflectorOptions};
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::{ListMeta, MetadataScan, StreamPiece};

/// Number of pages that are read ahead, as in client-go.
const READ_AHEAD: usize = 10;

/// Reads a list in pages.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use windlass::reflector::{MemorySource, Pager};
/// use windlass::resource::ResourceInfo;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), windlass::Error> {
/// let source = MemorySource::new(ResourceInfo::of::<ConfigMap>());
/// for name in ["a", "b", "c"] {
///     source.put(&json!({"metadata": {"namespace": "shop", "name": name}}))?;
/// }
/// let mut pages = Pager::new(Arc::new(source)).page_size(2).pages();
/// let mut sizes = Vec::new();
/// while let Some(page) = pages.next().await {
///     sizes.push(page?.items.len());
/// }
/// assert_eq!(sizes, [2, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Pager {
    source: Arc<dyn ListWatch>,
    page_size: u32,
    read_ahead: usize,
    full_list_if_expired: bool,
    version: Option<String>,
    limit: usize,
    clock: Clock,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// JSON of the objects, in the server's order.
    pub items: Vec<Bytes>,
    /// The version of the collection.
    pub resource_version: String,
    /// Token of the next page; `None` on the last.
    pub continue_token: Option<String>,
    /// Whether a continue token has expired, so that this is the whole list: earlier pages are
    /// void.
    pub restarts_list: bool,
}

impl Pager {
    /// Returns a pager with pages of 500 items, ten of them ahead, from a consistent read.
    pub fn new(source: Arc<dyn ListWatch>) -> Self {
        Self {
            source,
            page_size: PAGE,
            read_ahead: READ_AHEAD,
            full_list_if_expired: true,
            version: None,
            limit: ReflectorOptions::default().frame_limit,
            clock: Clock::system(),
        }
    }

    /// Sets the items per page; 0 asks for the whole list at once. Default: 500.
    #[must_use]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = items;
        self
    }

    /// Sets the number of pages that are read ahead of the caller, at least 1. Default: 10.
    ///
    /// client-go's `PageBufferSize`: 5. Each page is held as bytes until the caller takes the page.
    #[must_use]
    pub fn read_ahead(mut self, pages: usize) -> Self {
        self.read_ahead = pages.max(1);
        self
    }

    /// Sets whether the whole list is read at once when a continue token has expired. Default:
    /// true; otherwise the error is returned.
    ///
    /// client-go's `FullListIfExpired`. Continue tokens expire with the server's compaction, 5 min
    /// by default.
    #[must_use]
    pub fn full_list_if_expired(mut self, whole: bool) -> Self {
        self.full_list_if_expired = whole;
        self
    }

    /// Asks for a list that is not older than this version; `"0"` is any state that the server has
    /// in memory. Default: a consistent read.
    ///
    /// A list from memory is a single page of any size: servers do not page such lists.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the largest item in bytes. Default: 16 MiB. A list with a larger item fails.
    #[must_use]
    pub fn item_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Sets the clock that deadlines are measured by.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the pages, in sequence; a task of the runtime reads ahead. To be called within a
    /// runtime.
    pub fn pages(self) -> Pages {
        let (sender, receiver) = mpsc::channel(self.read_ahead);
        let task = tokio::spawn(async move {
            let mut next = Some(PageRequest::first(&self));
            while let Some(now) = next.take() {
                let page = self.page_or_list(now).await;
                if let Ok(page) = &page {
                    next = page.continue_token.clone().map(PageRequest::Token);
                }
                // Waits while `read_ahead` pages are buffered; fails when the `Pages` were dropped.
                if sender.send(page).await.is_err() {
                    return;
                }
            }
        });
        Pages { receiver, task }
    }

    /// Calls `each` for every object, in order, until `each` breaks; one page at a time, without
    /// read-ahead. When a continue token has expired, all objects are passed again, unless that was
    /// switched off.
    ///
    /// # Errors
    /// Errors of the source, and [`Decode`](ErrorKind::Decode) for an object without a name.
    /// # Cancel safety
    /// Dropping the future ends the request under way.
    pub async fn each(
        self,
        mut each: impl FnMut(&RawObject<'_>) -> ControlFlow<()> + Send,
    ) -> Result<(), Error> {
        let mut next = Some(PageRequest::first(&self));
        while let Some(now) = next.take() {
            let page = self.page_or_list(now).await?;
            for item in &page.items {
                let scan = MetadataScan::of(item).map_err(|error| {
                    Error::new(ErrorKind::Decode, format!("cannot read an item: {error}"))
                })?;
                if each(&RawObject::new(&scan, item)).is_break() {
                    return Ok(());
                }
            }
            next = page.continue_token.map(PageRequest::Token);
        }
        Ok(())
    }

    /// Returns the whole list as a single page.
    ///
    /// # Errors
    /// Errors of the source.
    /// # Cancel safety
    /// Dropping the future ends the request under way.
    pub async fn all(self) -> Result<Page, Error> {
        let mut whole = self.page_or_list(PageRequest::first(&self)).await?;
        while let Some(token) = whole.continue_token.take() {
            let page = self.page_or_list(PageRequest::Token(token)).await?;
            if page.restarts_list {
                whole.items.clear();
            }
            whole.items.extend(page.items);
            whole.resource_version = page.resource_version;
            whole.continue_token = page.continue_token;
        }
        Ok(whole)
    }

    /// Reads a page, or the whole list when the page's token has expired.
    async fn page_or_list(&self, next: PageRequest) -> Result<Page, Error> {
        let is_later = matches!(next, PageRequest::Token(_));
        match self.page(next).await {
            Err(error) if error.is_expired() && is_later && self.full_list_if_expired => {
                let whole = self.page(PageRequest::Whole).await?;
                Ok(Page { restarts_list: true, ..whole })
            }
            page => page,
        }
    }

    /// Reads a page.
    async fn page(&self, next: PageRequest) -> Result<Page, Error> {
        let limit = Some(self.page_size).filter(|items| *items > 0);
        let read = match next {
            PageRequest::First(resource_version) => {
                Read::Page { resource_version, limit, continue_token: None }
            }
            PageRequest::Token(token) => {
                Read::Page { resource_version: None, limit, continue_token: Some(token) }
            }
            PageRequest::Whole => {
                Read::Page { resource_version: None, limit: None, continue_token: None }
            }
        };
        let mut reader =
            PageReader::open(&*self.source, read, &self.clock, "a list", self.limit).await?;
        let mut items = Vec::new();
        let mut large = 0;
        while let Some(piece) = reader.next().await? {
            reader.split(&piece, &mut |part| match part {
                // Copied: an item must not keep the memory of the whole piece.
                StreamPiece::Whole(item) => items.push(Bytes::copy_from_slice(item)),
                StreamPiece::TooLarge(_) => large += 1,
            })?;
        }
        let ListMeta { resource_version, continue_token, .. } = reader.finish()?;
        if large > 0 {
            let text = format!("cannot list: {large} items are larger than {} bytes", self.limit);
            return Err(Error::new(ErrorKind::Decode, text));
        }
        Ok(Page { items, resource_version, continue_token, restarts_list: false })
    }
}

/// The next read.
#[derive(Debug)]
enum PageRequest {
    First(Option<String>),
    Token(String),
    Whole,
}

impl PageRequest {
    fn first(pager: &Pager) -> Self {
        Self::First(pager.version.clone())
    }
}

/// The pages of a list, some of them read ahead. Dropping the pages ends the request under way.
pub struct Pages {
    receiver: mpsc::Receiver<Result<Page, Error>>,
    task: JoinHandle<()>,
}

impl Pages {
    /// Returns the next page; `None` after the last, and after an error.
    ///
    /// # Errors
    /// Errors of the source.
    /// # Cancel safety
    /// Safe: no page is lost.
    pub async fn next(&mut self) -> Option<Result<Page, Error>> {
        self.receiver.recv().await
    }

    /// Returns the number of pages that are available at once.
    pub fn ready(&self) -> usize {
        self.receiver.len()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("ready", &self.ready()).finish_non_exhaustive()
    }
}
