//! Reads the catalog: one request per root, or one per group version for servers without aggregated
//! discovery.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use http::header::{ACCEPT, ETAG, IF_NONE_MATCH};
use tokio::task::JoinSet;
use tracing::Instrument;

use super::catalog::{ApiGroup, ApiVersion, Catalog};
use super::document::{self, DiscoveryRoot, GroupVersion};
use crate::client::{Client, Prepared};
use windlass_core::error::{Error, ErrorKind};

/// Deadline of a request, as in client-go.
pub(super) const TIMEOUT: Duration = Duration::from_secs(32);
/// Deadline of a group version: a silent version holds up the others.
pub(super) const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Retries of a failed group version, as in client-go: a version behind a server that is down must
/// not use up the time and the retries of the others.
const VERSION_RETRIES: u32 = 2;
/// Most group versions that are read at the same time.
const AT_ONCE: usize = 8;

/// Both versions of the aggregated form, and the legacy form for servers that ignore `as`.
const ACCEPTED: HeaderValue = HeaderValue::from_static(
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
     application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
);
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Aggregated documents of the last read, to be confirmed instead of read again.
#[derive(Clone, Default)]
pub(super) struct Tags {
    core: Option<Tagged>,
    others: Option<Tagged>,
}

/// An aggregated document with the entity tag.
#[derive(Clone)]
struct Tagged {
    tag: HeaderValue,
    groups: Arc<Vec<ApiGroup>>,
}

/// Result of reading a root.
struct FetchedRoot {
    groups: Arc<Vec<ApiGroup>>,
    tag: Option<HeaderValue>,
    /// Whether the server has this root.
    is_there: bool,
}

/// Builds a request for `path` with a deadline; `what` names the operation in error texts.
pub(super) fn get(path: impl Into<String>, what: impl Into<String>, limit: Duration) -> Prepared {
    let mut request = Prepared::get(path, what);
    request.timeout = Some(limit);
    request
}

/// Reads the whole catalog; `tags` are those of the last read.
pub(super) async fn catalog(client: &Client, tags: Tags) -> Result<(Catalog, Tags), Error> {
    let (core, others) =
        tokio::join!(root(client, "/api", tags.core), root(client, "/apis", tags.others));
    let (core, others) = (core?, others?);
    // A single root is enough: a server may lack the core group.
    if !core.is_there && !others.is_there {
        let text = format!(
            "cannot discover the resources of {}: it has neither /api nor /apis; is it an API \
             server, and is the path in its address right?",
            client.host()
        );
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    let groups = core.groups.iter().chain(others.groups.iter()).cloned().collect();
    let tags = Tags { core: core.tagged(), others: others.tagged() };
    Ok((Catalog { groups }, tags))
}

impl FetchedRoot {
    /// The document with the tag, for the next read.
    fn tagged(self) -> Option<Tagged> {
        self.tag.map(|tag| Tagged { tag, groups: self.groups })
    }
}

/// Reads a root, `/api` or `/apis`: in the aggregated form if the server has that form, otherwise
/// each group version separately. With the entity tag of an earlier read the answer may be that
/// nothing changed.
async fn root(
    client: &Client,
    path: &'static str,
    known: Option<Tagged>,
) -> Result<FetchedRoot, Error> {
    let what = "discover the resources of the API server";
    let mut request = get(path, what, TIMEOUT);
    request.headers.insert(ACCEPT, ACCEPTED);
    if let Some(known) = &known {
        // Answered with 304 and no body if nothing has changed.
        request.headers.insert(IF_NONE_MATCH, known.tag.clone());
    }
    let mut sent = client.send(request).await;
    // A server that knows none of the aggregated forms may refuse the list of types as a whole.
    if sent.as_ref().is_err_and(|error| code(error) == Some(406)) {
        let mut plain = get(path, what, TIMEOUT);
        plain.headers.insert(ACCEPT, JSON);
        sent = client.send(plain).await;
    }
    let answer = match (sent, known) {
        (Ok(answer), _) => answer,
        (Err(error), Some(known)) if code(&error) == Some(304) => {
            let Tagged { tag, groups } = known;
            return Ok(FetchedRoot { groups, tag: Some(tag), is_there: true });
        }
        (Err(error), _) if error.is_not_found() => {
            return Ok(FetchedRoot { groups: Arc::default(), tag: None, is_there: false });
        }
        (Err(error), _) => return Err(error),
    };
    let read = document::root(&answer.body).map_err(|error| {
        let text = format!(
            "cannot {what}: the answer to {path} is not a discovery document; does something else \
             than an API server answer?"
        );
        Error::new(ErrorKind::Decode, text).because(error)
    })?;
    let (groups, tag) = match read {
        DiscoveryRoot::Aggregated(groups) => (groups, answer.headers.get(ETAG).cloned()),
        // A tag of the names would not cover the documents of their versions.
        DiscoveryRoot::Legacy(named) => (each(client, named).await?, None),
    };
    Ok(FetchedRoot { groups: Arc::new(groups), tag, is_there: true })
}

/// The HTTP code of an error answer.
fn code(error: &Error) -> Option<u16> {
    error.status().map(|status| status.code)
}

/// Reads each group version separately. A failed version is kept with the reason; a missing version
/// is left out.
async fn each(client: &Client, named: Vec<GroupVersion>) -> Result<Vec<ApiGroup>, Error> {
    let mut read: BTreeMap<usize, ApiVersion> = BTreeMap::new();
    let mut running = JoinSet::new();
    let mut left = named.into_iter().enumerate();
    loop {
        while running.len() < AT_ONCE
            && let Some((at, named)) = left.next()
        {
            let client = client.clone();
            let task = async move { (at, outcome(&client, &named).await) };
            // Log lines keep the span of the caller.
            running.spawn(task.in_current_span());
        }
        match running.join_next().await {
            None => break,
            Some(Ok((at, version))) => {
                read.extend(version.map(|version| (at, version)));
            }
            Some(Err(error)) => {
                let text = "cannot discover the resources of the API server: a task was ended";
                return Err(Error::new(ErrorKind::Other, text).because(error));
            }
        }
    }
    let mut groups: Vec<ApiGroup> = Vec::new();
    // In the order of the names: the first version of a group is the preferred version.
    for version in read.into_values() {
        match groups.last_mut().filter(|group| group.name == version.group) {
            Some(group) => group.versions.push(version),
            None => groups.push(ApiGroup { name: version.group.clone(), versions: vec![version] }),
        }
    }
    Ok(groups)
}

/// Reads a group version; a failure becomes a part of the catalog.
async fn outcome(client: &Client, named: &GroupVersion) -> Option<ApiVersion> {
    match group_version(client, named, VERSION_TIMEOUT).await {
        Ok(version) => Some(version),
        // Deleted between the two requests.
        Err(error) if error.is_not_found() => None,
        Err(error) => {
            tracing::debug!(group = named.group, version = named.version, %error, "not read");
            Some(document::failed(&named.group, &named.version, error.to_string()))
        }
    }
}

/// Reads the document of a group version.
pub(super) async fn group_version(
    client: &Client,
    named: &GroupVersion,
    limit: Duration,
) -> Result<ApiVersion, Error> {
    let GroupVersion { group, version } = named;
    let (path, api_version) = match group.as_str() {
        "" => (format!("/api/{version}"), version.clone()),
        _ => (format!("/apis/{group}/{version}"), format!("{group}/{version}")),
    };
    let what = format!("discover the resources of {api_version}");
    let mut request = get(path, &what, limit);
    request.background = true;
    request.extra.max_retries = Some(VERSION_RETRIES);
    let answer = client.send(request).await?;
    document::group_version(named, &answer.body).map_err(|error| {
        let text = format!("cannot {what}: the answer is not a discovery document: {error}");
        Error::new(ErrorKind::Decode, text).because(error)
    })
}
