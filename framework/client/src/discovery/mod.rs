//! Discovery of the groups, versions, kinds and resources of an API server, by all their names.
//!
//! A kind that is known at run time only needs a path before the first read or write. [`Discovery`]
//! asks the server once, with a request per root if the server supports aggregated discovery and
//! with one per group version otherwise, and answers from a [`Catalog`] that all clones of a client
//! share. A group version that cannot be read never hides the others: such a version is reported by
//! name.
//!
//! Not included: a copy on disk, OpenAPI v2, and a watch of discovery (no server offers one).

mod cache;
mod catalog;
mod document;
mod fetch;
mod lookup;
mod openapi;
mod priority;
mod served;
#[cfg(test)]
mod tests;
mod version;

pub use catalog::{
    ApiGroup, ApiResource, ApiVersion, Catalog, ServedSubresource, VersionReadState,
};
pub use lookup::{Ambiguity, NoMatch};
pub use openapi::OpenApiIndex;
pub use version::ServerVersion;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use cache::CatalogCache;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceInfo;

/// Age at which a catalog is read anew: two small answers if nothing changed.
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(600);
/// Least age of a catalog that is read anew for a missing name: a name that does not exist cannot
/// make a client send requests without end.
const MISS_AGE: Duration = Duration::from_secs(5);

/// Discovery of an API server's resources on demand; cheap to clone.
///
/// Made by [`Client::discovery`]; all handles of a client and the handles' clones share a
/// [`Catalog`].
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn run(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let info = client.discovery().find("deploy").await?;
/// assert_eq!(info.kind, "Deployment");
/// for object in client.dynamic(info, Some("shop")).list().await?.items {
///     println!("{}", object.metadata.name.unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Discovery {
    /// Client that sends the reads.
    client: Client,
    /// State that all handles of the client share.
    cache: Arc<CatalogCache>,
    /// Age at which this handle renews the catalog.
    max_age: Duration,
}

/// The kinds that the server has.
impl Client {
    /// Returns the discovery of the kinds that the API server serves. All clones of this client
    /// share the cache.
    ///
    /// Nothing is sent: the first lookup reads the server.
    pub fn discovery(&self) -> Discovery {
        Discovery::new(self.clone(), self.extension())
    }
}

impl Discovery {
    pub(crate) fn new(client: Client, cache: Arc<CatalogCache>) -> Self {
        Self { client, cache, max_age: DEFAULT_MAX_AGE }
    }

    /// Greatest age of the catalog that this handle and clones of the handle use. Default: 10 min,
    /// because kinds come and go rarely, and a missing name leads to a new read in any case.
    ///
    /// The read is conditional: a server whose groups did not change answers with 304 and no body.
    /// A greater age than that of another handle does not keep the other from reading.
    #[must_use]
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// Returns the whole catalog: from memory, or from the server if there is none in memory, or
    /// the catalog is [too old](Self::max_age) or was [invalidated](Self::invalidate).
    ///
    /// At most one read runs per client; other callers that need the result wait for the read and
    /// share the result. An aged catalog that cannot be renewed stays in use, with a log line.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let catalog = client.discovery().catalog().await?;
    /// for resource in catalog.preferred().filter(|resource| resource.supports("list")) {
    ///     println!("{}", resource.info.plural);
    /// }
    /// for version in catalog.unread() {
    ///     println!("not read: {}", version.api_version());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Client::send`], and [`Decode`](windlass_core::ErrorKind::Decode) when the answer
    /// is no discovery document. Each request has a deadline of 32 s, or 10 s for a group version.
    /// # Cancel safety
    /// Safe: dropping the future cancels the requests; another waiting caller starts anew.
    pub async fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        let want = self.cache.want(self.oldest());
        Ok(self.cache.get(&self.client, want).await?.catalog)
    }

    /// Returns the whole catalog, read after this call.
    ///
    /// For use right after a definition was installed; [`wait_served`](Self::wait_served) also
    /// waits until the kind is served.
    ///
    /// # Errors
    /// Those of [`catalog`](Self::catalog).
    /// # Cancel safety
    /// As [`catalog`](Self::catalog).
    pub async fn refresh(&self) -> Result<Arc<Catalog>, Error> {
        let want = self.cache.want_newer();
        Ok(self.cache.get(&self.client, want).await?.catalog)
    }

    /// Discards all reads so far, for all handles of this client.
    ///
    /// Nothing is sent: the next lookup reads the server. A read under way does not count, either.
    pub fn invalidate(&self) {
        self.cache.invalidate();
    }

    /// Returns the resource that a user's `argument` names, by kubectl's rules: a plural, singular
    /// or short name or a kind, in any case, alone (`deploy`), with the group (`deployments.apps`)
    /// or with version and group (`deployments.v1.apps`; `pods.v1.` for the core group).
    ///
    /// Without a version the server's preferred version is taken. Without a group the core group
    /// goes first, so `events` and `pods` mean the same with and without a metrics server. Unlike
    /// kubectl, the lookup accepts no shortened group, and never chooses among several other
    /// groups.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use windlass::discovery::{Ambiguity, NoMatch};
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// match client.discovery().find("websites").await {
    ///     Ok(info) => println!("{} {}", info.api_version(), info.kind),
    ///     Err(error) => {
    ///         if let Some(ambiguity) = Ambiguity::of(&error) {
    ///             println!("{} groups have it", ambiguity.candidates.len());
    ///         } else if let Some(no_match) = NoMatch::of(&error) {
    ///             println!("looked at {:?}", no_match.groups);
    ///         } else {
    ///             return Err(error);
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`NotFound`](windlass_core::ErrorKind::NotFound) when the resource is not served, or
    /// [`Server`](windlass_core::ErrorKind::Server) when the resource may be served, in a group
    /// version that could not be read; both have a [`NoMatch`] as the source.
    /// [`Usage`](windlass_core::ErrorKind::Usage) with an [`Ambiguity`] when several groups serve
    /// the resource. Those of [`catalog`](Self::catalog).
    /// # Cancel safety
    /// As [`catalog`](Self::catalog).
    pub async fn find(&self, argument: &str) -> Result<ResourceInfo, Error> {
        self.lookup(|catalog| catalog.find(argument)).await
    }

    /// Returns the resource of a kind, in any group and version if they are `None`; `Some("")` is
    /// the core group.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let info = client.discovery().resource_for("Deployment", Some("apps"), None).await?;
    /// println!("{}", info.plural);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`find`](Self::find).
    /// # Cancel safety
    /// As [`catalog`](Self::catalog).
    pub async fn resource_for(
        &self,
        kind: &str,
        group: Option<&str>,
        version: Option<&str>,
    ) -> Result<ResourceInfo, Error> {
        self.lookup(|catalog| catalog.resource_for(kind, group, version)).await
    }

    /// Returns the resource of an object, by `apiVersion` and `kind`.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn run(client: windlass::client::Client, object: windlass::resource::DynamicObject)
    /// # -> Result<(), windlass::Error> {
    /// let info = client.discovery().resource_of(&object.api_version, &object.kind).await?;
    /// client.dynamic(info, object.metadata.namespace.as_deref()).create(&object).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`find`](Self::find).
    /// # Cancel safety
    /// As [`catalog`](Self::catalog).
    pub async fn resource_of(&self, api_version: &str, kind: &str) -> Result<ResourceInfo, Error> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        // Neither `/v1` nor `apps/` is an `apiVersion`.
        let is_group = group.is_empty() != api_version.contains('/');
        if !is_group || !document::is_segment(version) {
            let text = format!(
                "cannot find the kind {kind:?} of {api_version:?}: that is not an apiVersion, such as \
                 `v1` or `apps/v1`"
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        self.resource_for(kind, Some(group), Some(version)).await
    }

    /// Returns the kind of a resource by the plural name, in any group and version if they are
    /// `None`.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let info = client.discovery().kind_for("deployments", Some("apps"), Some("v1")).await?;
    /// assert_eq!(info.kind, "Deployment");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`find`](Self::find).
    /// # Cancel safety
    /// As [`catalog`](Self::catalog).
    pub async fn kind_for(
        &self,
        plural: &str,
        group: Option<&str>,
        version: Option<&str>,
    ) -> Result<ResourceInfo, Error> {
        self.lookup(|catalog| catalog.kind_for(plural, group, version)).await
    }

    /// Waits until `info` is served under the path, for at most `limit`. This client's catalog has
    /// the kind then, too. The first check is at once, later ones at most 5 s apart.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn run(client: windlass::client::Client, info: windlass::resource::ResourceInfo)
    /// # -> Result<(), windlass::Error> {
    /// client.discovery().wait_served(&info, std::time::Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Timeout`](windlass_core::ErrorKind::Timeout), with the last answer;
    /// [`Usage`](windlass_core::ErrorKind::Usage) when group or version is no valid name.
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn wait_served(&self, info: &ResourceInfo, limit: Duration) -> Result<(), Error> {
        served::wait(self, &served::WantedKind::of(info), limit).await.map(drop)
    }

    /// Waits until a kind is served, for at most `limit`, and returns the kind's resource; an empty
    /// group is the core group. Otherwise as [`wait_served`](Self::wait_served).
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use std::time::Duration;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let minute = Duration::from_secs(60);
    /// let info = client.discovery().wait_for_kind("example.dev", "v1", "Website", minute).await?;
    /// println!("{}", info.plural);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`wait_served`](Self::wait_served).
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn wait_for_kind(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        limit: Duration,
    ) -> Result<ResourceInfo, Error> {
        let wanted = served::WantedKind { group, version, kind, resource: None };
        served::wait(self, &wanted, limit).await
    }

    /// Requests the version of the API server, anew in each call.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn run(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let version = client.discovery().server_version().await?;
    /// println!("{version}, streaming lists: {}", version.at_least(1, 34));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Client::send`], and [`Decode`](windlass_core::ErrorKind::Decode).
    /// # Cancel safety
    /// Safe.
    pub async fn server_version(&self) -> Result<ServerVersion, Error> {
        version::fetch(&self.client).await
    }

    /// Requests the index of OpenAPI v3 documents, anew in each call.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let discovery = client.discovery();
    /// for path in discovery.openapi_v3().await?.paths() {
    ///     println!("{path}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Client::send`], and [`Decode`](windlass_core::ErrorKind::Decode).
    /// # Cancel safety
    /// Safe.
    pub async fn openapi_v3(&self) -> Result<OpenApiIndex, Error> {
        openapi::index(&self.client).await
    }

    /// Requests an OpenAPI v3 document: by the path in the [index](Self::openapi_v3), or by the
    /// group version (`apps/v1`, `v1`). For tools: a document may have megabytes, and none is
    /// cached here. The request contains the document's hash, so that HTTP caches can keep the
    /// document.
    ///
    /// # Errors
    /// [`NotFound`](windlass_core::ErrorKind::NotFound) when the index does not have the document;
    /// those of [`Client::send`], and [`Decode`](windlass_core::ErrorKind::Decode).
    /// # Cancel safety
    /// Safe.
    pub async fn openapi_v3_document(&self, path: &str) -> Result<serde_json::Value, Error> {
        openapi::document(&self.client, path).await
    }

    /// Searches the catalog, and once more in a new catalog if the first is old enough.
    async fn lookup<F>(&self, look: F) -> Result<ResourceInfo, Error>
    where
        F: Fn(&Catalog) -> Result<&ApiResource, Error>,
    {
        let kept = self.cache.get(&self.client, self.cache.want(self.oldest())).await?;
        let missed = match look(&kept.catalog) {
            Ok(found) => return Ok(found.info.clone()),
            // Only a missing name can appear in a newer catalog.
            Err(error) if NoMatch::of(&error).is_some() => error,
            Err(error) => return Err(error),
        };
        let now = self.client.environment().clock.now();
        // Fresh enough: a wrong name must not cause a read in each call.
        if now.saturating_duration_since(kept.asked_at) < MISS_AGE {
            return Err(missed);
        }
        let want = self.cache.want_after(kept.number, now.checked_sub(MISS_AGE));
        let kept = self.cache.get(&self.client, want).await?;
        look(&kept.catalog).map(|found| found.info.clone())
    }

    /// Start of the oldest accepted read; `None` accepts any.
    fn oldest(&self) -> Option<tokio::time::Instant> {
        self.client.environment().clock.now().checked_sub(self.max_age)
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery")
            .field("host", &self.client.host())
            .field("max_age", &self.max_age)
            .field("cache", &self.cache)
            .finish()
    }
}
