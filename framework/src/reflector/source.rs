//! Where a reflector reads from: the API server through the client, or a script in a test.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::sync::mpsc;

use crate::client::{ByteStream, Client, Prepared, Verb};
use crate::error::Error;
use crate::resource::ResourceInfo;

/// A body about to be opened.
pub(crate) type Opening<'a> = Pin<Box<dyn Future<Output = Result<Chunks, Error>> + Send + 'a>>;

/// Lists and watches one kind in one scope.
pub(crate) trait ListWatch: Debug + Send + Sync + 'static {
    /// Sends the request; the body streams. Error answers are errors.
    fn open(&self, read: Read) -> Opening<'_>;
}

/// A body that arrives in pieces. Dropping it ends the request.
#[derive(Debug)]
pub(crate) enum Chunks {
    /// From the API server.
    Http(ByteStream),
    /// From a task of this process.
    #[cfg_attr(not(test), expect(dead_code, reason = "scripts of tests"))]
    Channel(mpsc::Receiver<Result<Bytes, Error>>),
}

impl Chunks {
    /// The next piece; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        match self {
            Self::Http(stream) => stream.next().await,
            Self::Channel(receiver) => receiver.recv().await,
        }
    }
}

/// One request of a reflector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// A page of a consistent list; no limit means the whole list.
    Page { limit: Option<u32>, continue_token: Option<String> },
    /// The current state as events, an end mark, then changes, on one stream.
    StreamingList { timeout: Duration },
    /// Changes after a version.
    Watch { resource_version: String, timeout: Duration },
}

impl Read {
    fn query(&self) -> Vec<(&'static str, String)> {
        let mut query = Vec::new();
        let mut add = |name, value: String| query.push((name, value));
        match self {
            Self::Page { limit, continue_token } => {
                if let Some(limit) = limit {
                    add("limit", limit.to_string());
                }
                if let Some(token) = continue_token {
                    add("continue", token.clone());
                }
            }
            Self::StreamingList { timeout } => {
                add("watch", "true".to_owned());
                add("allowWatchBookmarks", "true".to_owned());
                add("sendInitialEvents", "true".to_owned());
                // Without a version this is a consistent read.
                add("resourceVersionMatch", "NotOlderThan".to_owned());
                add("timeoutSeconds", timeout.as_secs().to_string());
            }
            Self::Watch { resource_version, timeout } => {
                add("watch", "true".to_owned());
                add("allowWatchBookmarks", "true".to_owned());
                add("resourceVersion", resource_version.clone());
                add("timeoutSeconds", timeout.as_secs().to_string());
            }
        }
        query
    }

    fn verb(&self) -> Verb {
        match self {
            Self::Page { .. } => Verb::List,
            Self::StreamingList { .. } | Self::Watch { .. } => Verb::Watch,
        }
    }
}

/// A list may stream for so long; the reflector ends it much earlier when nothing comes.
const LONGEST_LIST: Duration = Duration::from_secs(600);

/// One kind in one namespace, or in all, of an API server.
#[derive(Debug)]
pub(crate) struct ApiServer {
    pub(crate) client: Client,
    pub(crate) info: ResourceInfo,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl ListWatch for ApiServer {
    fn open(&self, read: Read) -> Opening<'_> {
        let verb = read.verb();
        let path = self.info.collection_path(self.namespace.as_deref());
        let what = tried(verb, &self.info, self.namespace.as_deref());
        let mut request = Prepared::new(verb, Method::GET, path, what);
        for (name, value) in read.query() {
            request.push_parameter(name, value);
        }
        let selectors = [("labelSelector", &self.labels), ("fieldSelector", &self.fields)];
        for (name, selector) in selectors {
            if let Some(selector) = selector {
                request.push_parameter(name, selector.clone());
            }
        }
        request.timeout = (verb == Verb::List).then_some(LONGEST_LIST);
        request.scope = Some(self.info.scope);
        request.background = true;
        Box::pin(async move { Ok(Chunks::Http(self.client.stream(request).await?)) })
    }
}

/// `watch deployments.apps in "shop"`: for error texts.
pub(crate) fn tried(verb: Verb, info: &ResourceInfo, namespace: Option<&str>) -> String {
    let verb = if verb == Verb::List { "list" } else { "watch" };
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
    fn no_request_asks_for_a_stale_view() {
        let timeout = Duration::from_secs(300);
        for read in [
            Read::Page { limit: Some(500), continue_token: None },
            Read::Page { limit: None, continue_token: Some("t".to_owned()) },
            Read::StreamingList { timeout },
        ] {
            assert!(!read.query().iter().any(|(name, _)| *name == "resourceVersion"), "{read:?}");
        }
        let watch = Read::Watch { resource_version: "7".to_owned(), timeout };
        assert!(watch.query().contains(&("resourceVersion", "7".to_owned())));
        assert!(watch.query().contains(&("allowWatchBookmarks", "true".to_owned())));
    }
}
