//! A source that reads a kind from an API server.

use std::time::Duration;

use http::Method;
use http::header::{ACCEPT, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{ListWatch, OpenFuture, Read, Served, ServedFuture, describe_request};
use windlass_client::client::{Client, Prepared, Verb};
use windlass_core::error::Error;
use windlass_core::resource::ResourceInfo;

/// Deadline of a list; the reflector ends a list much earlier when no data arrives.
const LONGEST_LIST: Duration = Duration::from_secs(600);
/// Deadline of the query whether a kind is served.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// A kind in a single namespace, or in all, of an API server.
#[derive(Clone, Debug)]
pub struct ApiSource {
    client: Client,
    info: ResourceInfo,
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
    metadata_only: bool,
}

/// `Accept` header for metadata only, with whole objects as the fallback for servers that cannot do
/// that.
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
);
/// The same header for lists.
const METADATA_LIST: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
);

impl ApiSource {
    /// Returns a source of all objects of a kind.
    pub fn new(client: Client, info: ResourceInfo) -> Self {
        Self { client, info, namespace: None, labels: None, fields: None, metadata_only: false }
    }

    /// Limits the source to a single namespace; ignored for kinds that have none.
    #[must_use]
    pub fn namespace(mut self, namespace: Option<&str>) -> Self {
        self.namespace = namespace.map(str::to_owned);
        self
    }

    /// Limits the source to objects that match a label selector, such as `tier=front,!canary`.
    #[must_use]
    pub fn labels(mut self, selector: Option<&str>) -> Self {
        self.labels = selector.map(str::to_owned);
        self
    }

    /// Limits the source to objects that match a field selector, such as `spec.nodeName=a`.
    #[must_use]
    pub fn fields(mut self, selector: Option<&str>) -> Self {
        self.fields = selector.map(str::to_owned);
        self
    }

    /// Asks for `metadata` only. A server that cannot do that sends whole objects.
    #[must_use]
    pub fn metadata_only(mut self, metadata_only: bool) -> Self {
        self.metadata_only = metadata_only;
        self
    }

    /// Builds the HTTP request of a read.
    fn request(&self, read: &Read) -> Prepared {
        let verb = read.verb();
        let path = self.info.collection_path(self.namespace.as_deref());
        let what = describe_request(verb, &self.info, self.namespace.as_deref());
        let mut request = Prepared::new(verb, Method::GET, path, what);
        for (name, value) in read.query() {
            request.push_parameter(name, value);
        }
        for (name, value) in [("labelSelector", &self.labels), ("fieldSelector", &self.fields)] {
            if let Some(value) = value {
                request.push_parameter(name, value.clone());
            }
        }
        if self.metadata_only {
            let accept = if verb == Verb::List { METADATA_LIST } else { METADATA };
            request.headers.insert(ACCEPT, accept);
        }
        // A list may begin late; a watch keeps the client's own deadline.
        request.timeout = (verb == Verb::List).then_some(LONGEST_LIST);
        request.scope = Some(self.info.scope);
        // A retry budget for caches: they must not use up the budget of other callers.
        request.background = true;
        request
    }

    /// Reads the discovery document of the group version: small, readable by every user, and up to
    /// date before the aggregated document. A 404 for this document may come from a proxy: the
    /// group version counts as missing only if the list of groups, once read, does not have it
    /// either.
    async fn discover(&self) -> Served {
        let ResourceInfo { group, version, .. } = &self.info;
        let path = match &**group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match self.document::<Resources>(path).await {
            Ok(there) => there.map_or(Served::Unknown, |there| there.serve(&self.info)),
            Err(error) if error.is_not_found() && group.is_empty() => {
                let versions = self.document::<Versions>("/api".to_owned()).await;
                versions.ok().flatten().map_or(Served::Unknown, |there| there.lack(&self.info))
            }
            Err(error) if error.is_not_found() => {
                let groups = self.document::<Groups>("/apis".to_owned()).await;
                groups.ok().flatten().map_or(Served::Unknown, |there| there.lack(&self.info))
            }
            Err(_) => Served::Unknown,
        }
    }

    /// Reads a discovery document; `None` when the answer is not such a document.
    async fn document<D: DeserializeOwned>(&self, path: String) -> Result<Option<D>, Error> {
        let what = format!("discover whether {} is served", self.info);
        let mut request = Prepared::get(path, what);
        request.timeout = Some(DISCOVERY_TIMEOUT);
        request.background = true;
        let answer = self.client.send(request).await?;
        Ok(serde_json::from_slice(&answer.body).ok())
    }
}

/// The versions of the core group, from `/api`.
#[derive(Deserialize)]
struct Versions {
    versions: Vec<String>,
}

impl Versions {
    /// Returns [`Served::No`] if the version is not in the list.
    fn lack(&self, info: &ResourceInfo) -> Served {
        let is_there = self.versions.iter().any(|version| *version == *info.version);
        if is_there { Served::Unknown } else { Served::No }
    }
}

/// The other groups, from `/apis`.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<ServedGroup>,
}

#[derive(Deserialize)]
struct ServedGroup {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl Groups {
    /// Returns [`Served::No`] if the group version is not in the list.
    fn lack(&self, info: &ResourceInfo) -> Served {
        let mut groups = self.groups.iter().filter(|group| *group.name == *info.group);
        let is_there = groups
            .any(|group| group.versions.iter().any(|version| *version.version == *info.version));
        if is_there { Served::Unknown } else { Served::No }
    }
}

/// The kinds of a group version.
#[derive(Deserialize)]
struct Resources {
    resources: Vec<ServedResource>,
}

#[derive(Deserialize)]
struct ServedResource {
    name: String,
}

impl Resources {
    /// Returns whether the kind is in the list.
    fn serve(&self, info: &ResourceInfo) -> Served {
        let is_there = self.resources.iter().any(|resource| *resource.name == *info.plural);
        if is_there { Served::Yes } else { Served::No }
    }
}

impl ListWatch for ApiSource {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        let request = self.request(&read);
        Box::pin(async move { Ok(self.client.stream(request).await?.into()) })
    }

    fn is_served(&self) -> ServedFuture<'_> {
        Box::pin(self.discover())
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, pending};
    use std::io;
    use std::pin::Pin;
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use windlass_client::client::{BoxIo, Connect};
    use windlass_core::clock::Clock;
    use windlass_core::environment::Environment;
    use windlass_core::metrics::Metrics;
    use windlass_core::rng::Rng;

    /// A connector that never connects.
    #[derive(Debug)]
    struct Nowhere;

    impl Connect for Nowhere {
        fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
            Box::pin(pending())
        }
    }

    fn source() -> ApiSource {
        let environment =
            Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() };
        ApiSource::new(
            Client::over(Arc::new(Nowhere), environment),
            ResourceInfo::of::<ConfigMap>(),
        )
    }

    fn reads() -> [Read; 3] {
        let timeout = Duration::from_secs(300);
        [
            Read::Page { resource_version: None, limit: None, continue_token: None },
            Read::StreamingList { resource_version: None, timeout },
            Read::Watch { resource_version: "7".to_owned(), timeout },
        ]
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_list_in_pages_may_take_ten_minutes_until_it_begins() {
        let timeouts = reads().map(|read| source().request(&read).timeout);
        assert_eq!(timeouts, [Some(LONGEST_LIST), None, None], "the client's own for a watch");
    }

    /// A server answers with whole objects if the requested form does not fit the answer.
    #[tokio::test(start_paused = true)]
    async fn metadata_are_asked_for_as_a_list_in_pages_and_as_objects_on_a_watch() {
        let accepted =
            |source: &ApiSource, read: &Read| source.request(read).headers.remove(ACCEPT);
        let metadata_only = source().metadata_only(true);
        let forms = reads().map(|read| accepted(&metadata_only, &read));
        assert_eq!(forms, [Some(METADATA_LIST), Some(METADATA), Some(METADATA)]);
        let whole = reads().map(|read| accepted(&source(), &read));
        assert_eq!(whole, [None, None, None]);
    }
}
