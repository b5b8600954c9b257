//! A list as a stream of objects, with a single page in memory at a time.
//!
//! The next page is requested when the last object of the current page was taken; nothing is read
//! ahead, and nothing is read any more once the stream is dropped. For a reader slower than the
//! server's memory (about five minutes) the continue token expires: the stream then continues at
//! the same position, at a newer version ([`ListStream::is_consistent`]). No object comes twice;
//! objects that were created or deleted meanwhile behind the position are not noticed. A caller
//! that needs a single version takes the whole list, and a caller that needs to stay up to date
//! takes an informer.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::api::ApiFuture;
use crate::api::decode::{self, DecodedPage};
use crate::api::draft::Draft;
use windlass_core::error::Error;
use windlass_core::resource::Resource;

/// Most expired tokens in a row without a new object in between.
const MOST_EXPIRIES: u32 = 3;

/// A stream of the objects of a list. Also a [`Stream`]. A drop cancels the current request.
///
/// An expired continue token is handled in two ways. The server's answer mostly carries a token
/// that continues after the last page: the stream uses that token. Otherwise the list begins anew,
/// and objects that were returned already are skipped by their position in the server's order
/// (`namespace/name`); for a server with another order, the stream returns the error instead.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let mut pods = client.all::<Pod>().list().page_size(100).stream();
/// while let Some(pod) = pods.next().await {
///     match pod {
///         Ok(pod) => println!("{:?}", pod.metadata.name),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// println!("one version: {}", pods.is_consistent());
/// # Ok(())
/// # }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct ListStream<K> {
    /// Requests the first page.
    draft: Draft,
    /// The request after the current page.
    next: NextPage,
    /// The request under way; `None` while objects of a page are left.
    fetching: Option<ApiFuture<'static, DecodedPage<K>>>,
    /// Objects of the current page that were not returned.
    items: std::vec::IntoIter<Result<K, Error>>,
    /// Position of the last returned object.
    last: Option<String>,
    /// Whether all objects so far came in order of their position.
    ordered: bool,
    /// Whether objects up to `last` are skipped, because an earlier list returned them.
    skipping: bool,
    /// Whether all objects so far have the same version.
    consistent: bool,
    /// Expired tokens since the last new object.
    expiries: u32,
    resource_version: String,
}

/// The next request.
#[derive(Debug)]
enum NextPage {
    First,
    Token(String),
    /// The server's next token was that of the request.
    Repeated,
    End,
}

impl<K: Resource> ListStream<K> {
    pub(crate) fn new(mut draft: Draft, page_size: u32) -> Self {
        draft.set("limit", page_size.to_string());
        Self {
            draft,
            next: NextPage::First,
            fetching: None,
            items: Vec::new().into_iter(),
            last: None,
            ordered: true,
            skipping: false,
            consistent: true,
            expiries: 0,
            resource_version: String::new(),
        }
    }

    /// Returns the next object; `None` at the end. An object that does not decode is an error, and
    /// the next object follows; any other error ends the stream.
    ///
    /// # Errors
    /// Those of [`Client::send`](crate::client::Client::send);
    /// [`Decode`](windlass_core::ErrorKind::Decode) names the object.
    /// # Cancel safety
    /// Safe: no object is lost, and the next call continues the current request.
    pub async fn next(&mut self) -> Option<Result<K, Error>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// The version of the collection on the last page; empty before the first.
    pub fn resource_version(&self) -> &str {
        &self.resource_version
    }

    /// Whether all objects so far are from the same version of the collection.
    ///
    /// False from the first expired token on.
    pub fn is_consistent(&self) -> bool {
        self.consistent
    }

    /// Returns an object of the current page, or turns to the next page.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<K, Error>>> {
        loop {
            if let Some(item) = self.items.next() {
                if let Some(item) = self.deduplicated(item) {
                    return Poll::Ready(Some(item));
                }
                continue;
            }
            // Only after the objects of the page, which are good.
            if let NextPage::Repeated = self.next {
                self.next = NextPage::End;
                return Poll::Ready(Some(Err(self.draft.repeated_token())));
            }
            // Stored, so that a dropped `next` does not lose the request.
            let Some(fetching) = &mut self.fetching else {
                match self.fetch() {
                    Some(fetching) => self.fetching = Some(fetching),
                    None => return Poll::Ready(None),
                }
                continue;
            };
            let page = ready!(fetching.as_mut().poll(cx));
            self.fetching = None;
            match page {
                Ok(page) => self.take_page(page),
                Err(error) => {
                    if let Err(error) = self.resume(error) {
                        self.next = NextPage::End;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        }
    }

    /// Starts the request of the next page; `None` at the end.
    fn fetch(&self) -> Option<ApiFuture<'static, DecodedPage<K>>> {
        let draft = match &self.next {
            NextPage::First => self.draft.clone(),
            NextPage::Token(token) => self.draft.next_page(token),
            NextPage::Repeated | NextPage::End => return None,
        };
        Some(Box::pin(draft.send(decode::page)))
    }

    /// Takes over a page and the token of the next page.
    fn take_page(&mut self, page: DecodedPage<K>) {
        self.items = page.items.into_iter();
        self.resource_version = page.resource_version;
        self.next = match (page.continue_token, &self.next) {
            (None, _) => NextPage::End,
            (Some(token), NextPage::Token(asked)) if token == *asked => NextPage::Repeated,
            (Some(token), _) => NextPage::Token(token),
        };
    }

    /// Returns `item`, unless an earlier list returned the object already.
    fn deduplicated(&mut self, item: Result<K, Error>) -> Option<Result<K, Error>> {
        let Ok(object) = item else { return Some(item) };
        let place = place(&object);
        if let Some(last) = &self.last
            && place <= *last
        {
            // An earlier list returned this object.
            if self.skipping {
                return None;
            }
            // Out of order: positions cannot distinguish returned objects from new ones after a
            // fresh start.
            self.ordered = false;
        }
        // Behind the last position every object is new.
        self.skipping = false;
        self.expiries = 0;
        self.last = Some(place);
        Some(Ok(object))
    }

    /// Decides how to continue after `error`; returns the error if the stream cannot continue.
    fn resume(&mut self, error: Error) -> Result<(), Error> {
        self.expiries += 1;
        // A first page has no token: a 410 is about the caller's version.
        let had_token = matches!(self.next, NextPage::Token(_));
        if !error.is_expired() || !had_token || self.expiries > MOST_EXPIRIES {
            return Err(error);
        }
        let token = error.status().map(|status| status.metadata.continue_token.clone());
        match token.filter(|token| !token.is_empty()) {
            Some(token) => self.next = NextPage::Token(token),
            None if self.ordered => {
                // The new list takes the newest version: the wanted version may have expired, too.
                self.draft.unset("resourceVersion");
                self.draft.unset("resourceVersionMatch");
                self.next = NextPage::First;
                self.skipping = self.last.is_some();
            }
            None => return Err(error.note("the list cannot continue: the server did not sort it")),
        }
        self.consistent = false;
        tracing::debug!(%error, "a list goes on at a newer version");
        Ok(())
    }
}

/// Position in the server's order: by the whole key, so that `a-b/x` comes before `a/x`.
fn place<K: Resource>(object: &K) -> String {
    let metadata = object.metadata();
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

impl<K> Unpin for ListStream<K> {}

impl<K: Resource> Stream for ListStream<K> {
    type Item = Result<K, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(cx)
    }
}

impl<K> fmt::Debug for ListStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListStream")
            .field("draft", &self.draft)
            .field("next", &self.next)
            .field("last", &self.last)
            .field("consistent", &self.consistent)
            .finish_non_exhaustive()
    }
}
