//! Lists.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;

use super::ApiFuture;
use super::decode::decode_list;
use super::draft::Draft;
use crate::client::{Client, Prepared};
use crate::error::{Error, ErrorKind};
use crate::resource::{Resource, ResourceInfo};

/// Objects a page when nobody asks for a page.
const PAGE: u32 = 500;

/// A page or a whole list.
#[derive(Clone, Debug)]
pub struct ObjectList<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The version of the collection that this shows.
    pub resource_version: String,
    /// Token of the next page; `None` on the last one.
    pub continue_token: Option<String>,
}

/// A list about to be requested; await it.
///
/// # Errors
/// Those of [`Client::send`]; [`Decode`](ErrorKind::Decode) names an object that does not decode.
#[must_use = "a request does nothing until it is awaited"]
pub struct List<K> {
    draft: Draft,
    one_page: bool,
    _kind: PhantomData<fn() -> K>,
}

impl<K> List<K> {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, one_page: false, _kind: PhantomData }
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

    /// One page of at most so many objects; the answer's
    /// [`continue_token`](ObjectList::continue_token) leads to the next.
    pub fn limit(mut self, limit: u32) -> Self {
        self.one_page = true;
        self.set("limit", limit.to_string())
    }

    /// The page after an earlier one.
    pub fn continue_token(mut self, token: &str) -> Self {
        self.one_page = true;
        self.set("continue", token)
    }

    /// Not older than this version; `0` takes whatever the server has at hand. Default: the newest.
    pub fn resource_version(self, version: &str) -> Self {
        self.set("resourceVersion", version)
    }
}

impl<K: Resource> IntoFuture for List<K> {
    type Output = Result<ObjectList<K>, Error>;
    type IntoFuture = ApiFuture<'static, ObjectList<K>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let target = self.draft.target.clone();
            let request = self.draft.finish()?;
            if self.one_page {
                return page(&target.client, request, &target.info).await;
            }
            every_page(&target.client, request, &target.info).await
        })
    }
}

async fn page<K: Resource>(
    client: &Client,
    request: Prepared,
    info: &ResourceInfo,
) -> Result<ObjectList<K>, Error> {
    let what = request.what.clone();
    decode_list(&what, &client.send(request).await?.body, info)
}

/// Follows the pages to the end. When a token expires on the way, starts anew without pages.
async fn every_page<K: Resource>(
    client: &Client,
    request: Prepared,
    info: &ResourceInfo,
) -> Result<ObjectList<K>, Error> {
    let mut paged = request.clone();
    paged.push_parameter("limit", PAGE.to_string());
    let mut list: ObjectList<K> = page(client, paged.clone(), info).await?;
    // Later pages show the version of the first; the server refuses both together.
    paged.query.retain(|(key, _)| *key != "resourceVersion");
    while let Some(token) = list.continue_token.take() {
        let mut next = paged.clone();
        next.push_parameter("continue", token);
        match page::<K>(client, next, info).await {
            Ok(more) => {
                list.items.extend(more.items);
                list.continue_token = more.continue_token;
            }
            Err(error) if error.kind() == ErrorKind::Expired => {
                return page(client, request, info).await;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(list)
}

impl<K> fmt::Debug for List<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List").field("draft", &self.draft).finish_non_exhaustive()
    }
}
