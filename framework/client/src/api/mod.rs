//! Typed verbs. Each returns a request, which is sent when it is awaited.
//!
//! Types exist at the edge only: a call is built as plain data and its answer is decoded at the
//! end, so that a kind costs little code. A request that cannot be sent (an empty name, a name with
//! a slash, a namespaced object without a namespace) fails as [`ErrorKind::Usage`] before anything
//! is sent. Typed, dynamic and metadata-only objects go through the same [`Api`].
//!
//! Not here: caching (informers).
//!
//! | need | call |
//! |---|---|
//! | one object, or an error | [`Api::get`] |
//! | one object, or `None` | [`Api::get_opt`] |
//! | its metadata only | [`Api::get_metadata`]; for all calls [`Api::metadata`] |
//! | all objects, of one version | [`Api::list`], awaited |
//! | all objects one by one, in little memory | [`Api::list`] and [`List::stream`] |
//! | one page | [`List::limit`], [`List::continue_token`] |
//! | changes, for the life of a watch | [`Api::watch`] |
//! | changes, over lost connections | [`Watch::resuming`] |
//! | a cache of a kind | an informer |
//! | a new object | [`Api::create`] |
//! | your fields set, whatever the object was | [`Api::apply`], [`Api::apply_status`] |
//! | your applied fields, read back | [`owned_fields`] |
//! | updated fields turned into applied ones | [`upgrade_to_apply`] |
//! | the whole object, unless another writer changed it | [`Api::replace`] |
//! | some fields | [`Api::patch`] |
//! | exactly your changes to a copy | [`Api::patcher`] |
//! | its status instead | [`Write::status`] |
//! | a wanted state, created if missing | [`Api::create_or_update`], [`Api::create_or_patch`] |
//! | read, change, write until no conflict is left | [`retry_on_conflict`] |
//! | one object deleted | [`Api::delete`], [`Api::wait_deleted`] |
//! | many objects deleted | [`Api::delete_collection`] |
//! | to wait until it is ready | [`Api::wait_for`] |
//! | another number of replicas | [`Api::scale`] |
//! | a Pod moved away, budgets respected | [`Api::evict`] |
//! | the output of a container | [`Api::log`] |
//! | a service account's token | [`Api::token_request`] |
//! | any other subresource | [`Api::subresource`] |
//! | a kind without a Rust type | [`Client::dynamic`] |
//! | any URL | [`Request`](crate::client::Request) |
//!
//! [`ErrorKind::Usage`]: windlass_core::ErrorKind::Usage

mod decode;
mod draft;
mod ownership;
mod patch;
mod read;
#[cfg(feature = "ws")]
pub mod remote;
mod send;
mod subresource;
#[cfg(test)]
mod tests;
mod write;

pub use ownership::{owned_fields, upgrade_to_apply};
pub use patch::Patch;
pub use read::{
    Condition, Get, List, ListStream, ObjectList, ResumingWatch, VersionMatch, Watch, WatchEvent,
    WatchStream,
};
pub use subresource::{Evict, Log, LogStream, Subresource, Token, TokenRequest};
pub use write::{
    Delete, DeleteCollection, Deleted, FieldValidation, Patcher, Propagation, Retries, Upserted,
    Write, retry_on_conflict,
};

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::autoscaling::v1::Scale;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, Verb};
use draft::{Draft, Target};
use windlass_core::error::Error;
use windlass_core::resource::{
    DynamicObject, PartialObject, Resource, ResourceExt, ResourceInfo, Scope, Whole,
};

/// Future of a request's result.
pub type ApiFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The APIs of kinds.
impl Client {
    /// Returns the API of a kind, in all namespaces.
    pub fn all<K: Resource>(&self) -> Api<K> {
        Api::new(self.clone(), K::static_info(), self.bound_namespace())
    }

    /// Returns the API of a kind in one namespace. For a cluster-scoped kind the namespace is
    /// ignored.
    pub fn namespace<K: Resource>(&self, namespace: &str) -> Api<K> {
        Api::new(self.clone(), K::static_info(), Some(namespace))
    }

    /// Returns the API of a kind that is known at run time; a `namespace` of `None` means all.
    pub fn dynamic(&self, info: ResourceInfo, namespace: Option<&str>) -> Api<DynamicObject> {
        Api::new(self.clone(), Some(info), namespace.or(self.bound_namespace()))
    }
}

/// One kind in one namespace or in all; cheap to clone.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use serde_json::json;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let maps = client.namespace::<ConfigMap>("shop");
/// maps.apply("settings", &json!({ "data": { "color": "red" } })).force().await?;
/// let mut all = client.all::<ConfigMap>().list().labels("app=shop").stream();
/// while let Some(map) = all.next().await {
///     println!("{:?}", map?.metadata.name);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Api<K> {
    target: Arc<Target>,
    // `fn() -> K`: no object is stored, so that `K` decides neither `Send` nor `Sync`.
    _kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Api<K> {
    fn clone(&self) -> Self {
        Self { target: Arc::clone(&self.target), _kind: PhantomData }
    }
}

impl<K> fmt::Debug for Api<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("info", &self.target.info)
            .field("namespace", &self.target.namespace)
            .finish_non_exhaustive()
    }
}

impl<K: Resource> Api<K> {
    pub(crate) fn new(client: Client, info: Option<ResourceInfo>, namespace: Option<&str>) -> Self {
        Self { target: Arc::new(Target::new(client, info, namespace)), _kind: PhantomData }
    }

    /// Returns the kind. All its parts are empty for a kind that only a value knows, if it was
    /// asked for without one: every call then fails as
    /// [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage).
    pub fn info(&self) -> &ResourceInfo {
        &self.target.info
    }

    /// Returns the namespace; `None` for all of them, or for a kind without namespaces.
    pub fn in_namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    /// Returns the client that sends the requests.
    pub fn client(&self) -> &Client {
        &self.target.client
    }

    /// Returns an `Api` for the same kind and namespace, metadata only.
    ///
    /// Reads and watches ask the server to leave the rest out, which saves most of the work for
    /// large objects on both sides. Servers that cannot do it send whole objects, of which the
    /// metadata is kept. Creating and replacing fail as
    /// [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage).
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let pods = client.all::<Pod>().metadata();
    /// println!("{} pods", pods.list().await?.items.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn metadata(&self) -> Api<PartialObject> {
        Api { target: Arc::new(self.target.metadata()), _kind: PhantomData }
    }

    /// Returns an `Api` for the namespace of `object`, if this one is for all namespaces.
    fn near(&self, object: &K) -> Self {
        match object.namespace().filter(|_| self.target.namespace.is_none()) {
            Some(namespace) if self.target.info.scope == Scope::Namespaced => {
                let target =
                    Target { namespace: Some(namespace.to_owned()), ..(*self.target).clone() };
                Self { target: Arc::new(target), _kind: PhantomData }
            }
            _ => self.clone(),
        }
    }

    /// Reads one object. [`Get::opt`] returns `None` for one that does not exist.
    pub fn get(&self, name: &str) -> Get<K> {
        Get::new(Draft::named(&self.target, Verb::Get, name), decode::object)
    }

    /// Reads one object; `None` when it does not exist.
    ///
    /// # Errors
    /// Those of [`Client::send`], without `NotFound`.
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        self.get(name).opt().await
    }

    /// Reads one object's metadata; see [`metadata`](Self::metadata).
    pub fn get_metadata(&self, name: &str) -> Get<PartialObject> {
        let draft = Draft::named(&self.target, Verb::Get, name);
        Get::new(draft.only_metadata(), decode::object)
    }

    /// Reads the collection, page by page, unless a [limit](List::limit) asks for one page; or as a
    /// [stream](List::stream).
    pub fn list(&self) -> List<K> {
        List::new(Draft::collection(&self.target, Verb::List))
    }

    /// Follows changes of the collection.
    pub fn watch(&self) -> Watch<K> {
        Watch::new(Draft::collection(&self.target, Verb::Watch))
    }

    /// Creates `object`, by its name or `generateName`; the answer carries the generated name.
    pub fn create(&self, object: &K) -> Write<K>
    where
        K: Whole,
    {
        Write::new(
            Draft::create(&self.target, object.metadata(), draft::json(object)),
            decode::object,
        )
    }

    /// Replaces the object of the same name. With a resourceVersion, which must be the stored one
    /// (otherwise [`Conflict`](windlass_core::ErrorKind::Conflict)). Without one most built-in kinds
    /// are replaced whatever is stored, and custom resources are refused.
    pub fn replace(&self, object: &K) -> Write<K>
    where
        K: Whole,
    {
        Write::new(
            Draft::replace(&self.target, object.metadata(), draft::json(object)),
            decode::object,
        )
    }

    /// Patches an object, in one of the formats of [`Patch`].
    pub fn patch(&self, name: &str, patch: Patch) -> Write<K> {
        Write::new(Draft::patch(&self.target, name, patch), decode::object)
    }

    /// Server-side apply of `intent`, which contains only the fields that this field manager wants.
    /// Missing `apiVersion`, `kind` and name are added; `managedFields` are left out.
    pub fn apply<T: Serialize>(&self, name: &str, intent: &T) -> Write<K> {
        Write::new(Draft::apply(&self.target, name, serde_json::to_value(intent)), decode::object)
    }

    /// Server-side apply of the status in `intent`: [`apply`](Self::apply) with [`Write::status`].
    pub fn apply_status<T: Serialize>(&self, name: &str, intent: &T) -> Write<K> {
        self.apply(name, intent).status()
    }

    /// Deletes an object; the answer says whether it is gone or [waits](Deleted::Terminating).
    pub fn delete(&self, name: &str) -> Delete<K> {
        Delete::new(Draft::named(&self.target, Verb::Delete, name))
    }

    /// Deletes the objects that the selectors match, in one namespace; all of them without a
    /// selector.
    pub fn delete_collection(&self) -> DeleteCollection {
        DeleteCollection::new(Draft::collection(&self.target, Verb::DeleteCollection))
    }
}

/// Subresources. The API server decides which kind has which; its 404 and 405 are explained.
impl<K: Resource> Api<K> {
    /// Any subresource of an object, with bodies of type `T`; `serde_json::Value` accepts any body.
    /// For the status, [`Write::status`] is shorter.
    pub fn subresource<T>(&self, object: &str, name: &str) -> Subresource<T>
    where
        T: Serialize + DeserializeOwned + 'static,
    {
        Subresource::new(&self.target, object, name)
    }

    /// The number of replicas of a workload, or of a custom resource that declares the field.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// client.namespace::<Deployment>("shop").scale("web").to(3).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn scale(&self, name: &str) -> Subresource<Scale> {
        self.subresource(name, "scale")
    }

    /// Evicts a Pod: deletes it if the disruption budgets allow it.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// match client.namespace::<Pod>("shop").evict("web-0").await {
    ///     Err(error) if error.is_disruption_budget() => println!("not now"),
    ///     result => result?,
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn evict(&self, pod: &str) -> Evict {
        Evict::new(Draft::part(&self.target, Verb::Create, pod, "eviction"))
    }

    /// Requests a token of a service account.
    pub fn token_request(&self, service_account: &str) -> TokenRequest {
        TokenRequest::new(Draft::part(&self.target, Verb::Create, service_account, "token"))
    }

    /// Reads the output of a container of a Pod.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let pods = client.namespace::<Pod>("shop");
    /// let mut log = pods.log("web-0").container("web").tail(10).follow().await?;
    /// while let Some(line) = log.next_line().await {
    ///     println!("{}", line?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn log(&self, pod: &str) -> Log {
        Log::new(Draft::part(&self.target, Verb::Get, pod, "log"))
    }
}
