//! Typed verbs. Each returns a request, which is sent when awaited.
//!
//! Types exist at the edge only: a call is built as plain data and the answer is decoded at the
//! end, so that a kind costs little code. A request that cannot be sent (an empty name, a name with
//! a slash, a namespaced object without a namespace) fails as [`ErrorKind::Usage`] before anything
//! is sent. Typed, dynamic and metadata-only objects go through the same [`Api`].
//!
//! Not included: caching (informers).
//!
//! | need | call |
//! |---|---|
//! | a single object, or an error | [`Api::get`] |
//! | a single object, or `None` | [`Api::get_opt`] |
//! | only the metadata of an object | [`Api::get_metadata`]; for all calls [`Api::metadata`] |
//! | all objects, of a single version | [`Api::list`], awaited |
//! | all objects in sequence, in little memory | [`Api::list`] and [`List::stream`] |
//! | a single page | [`List::limit`], [`List::continue_token`] |
//! | changes, for the life of a watch | [`Api::watch`] |
//! | changes, over lost connections | [`Watch::resuming`] |
//! | a cache of a kind | an informer |
//! | a new object | [`Api::create`] |
//! | your fields set, whatever the object was before | [`Api::apply`], [`Api::apply_status`] |
//! | your applied fields, read back | [`owned_fields`] |
//! | updated fields turned into applied ones | [`upgrade_to_apply`] |
//! | the whole object, unless another writer changed the object | [`Api::replace`] |
//! | some fields | [`Api::patch`] |
//! | exactly your changes to a copy | [`Api::patcher`] |
//! | the status instead | [`Write::status`] |
//! | a wanted state, created if missing | [`Api::create_or_update`], [`Api::create_or_patch`] |
//! | read, change, write until no conflict is left | [`retry_on_conflict`] |
//! | a single object deleted | [`Api::delete`], [`Api::wait_deleted`] |
//! | many objects deleted | [`Api::delete_collection`] |
//! | to wait until an object is ready | [`Api::wait_for`] |
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
mod object_list;
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

pub use object_list::ObjectList;
pub use ownership::{owned_fields, upgrade_to_apply};
pub use patch::Patch;
pub use read::{
    Get, List, ListStream, ResumingWatch, VersionMatch, WaitCondition, Watch, WatchEvent,
    WatchStream,
};
pub use subresource::{Evict, Log, LogStream, Subresource, Token, TokenRequest};
pub use write::{
    Delete, DeleteCollection, Deletion, FieldValidation, Patcher, Propagation, Retries, Upserted,
    Write, retry_on_conflict,
};

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use crate::client::{Client, Verb};
use draft::{ApiTarget, Draft};
use windlass_core::error::Error;
use windlass_core::resource::{
    ApplyIntent, DynamicObject, FullObject, PartialObject, Resource, ResourceExt, ResourceInfo,
    Scope,
};

/// Future of a request's result.
///
/// Boxed, so that a request in a larger future costs a pointer there. Dropping the future cancels
/// the request.
pub type ApiFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The APIs of kinds.
impl Client {
    /// Returns the API of a kind, in all namespaces.
    ///
    /// For a single object of a namespaced kind the namespace is needed: use
    /// [`namespace`](Self::namespace). A client that is restricted to a namespace has the API in
    /// that namespace. Nothing is sent.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Node;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// for node in client.all::<Node>().list().await?.items {
    ///     println!("{:?}", node.metadata.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn all<K: Resource>(&self) -> Api<K> {
        Api::new(self.clone(), K::static_info(), self.bound_namespace())
    }

    /// Returns the API of a kind in a single namespace. For a cluster-scoped kind the namespace is
    /// ignored.
    ///
    /// An empty namespace makes every call fail as [`Usage`](windlass_core::ErrorKind::Usage); for
    /// all namespaces use [`all`](Self::all). Nothing is sent.
    pub fn namespace<K: Resource>(&self, namespace: &str) -> Api<K> {
        Api::new(self.clone(), K::static_info(), Some(namespace))
    }

    /// Returns the API of a kind that is known at run time; a `namespace` of `None` means all.
    ///
    /// Discovery finds the [`ResourceInfo`] of a name that a user typed.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let info = client.discovery().find("deployments.apps").await?;
    /// let all = client.dynamic(info, Some("shop")).list().await?;
    /// println!("{} Deployments", all.items.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn dynamic(&self, info: ResourceInfo, namespace: Option<&str>) -> Api<DynamicObject> {
        Api::new(self.clone(), Some(info), namespace.or(self.bound_namespace()))
    }
}

/// A kind in a single namespace or in all; cheap to clone.
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
///
/// Setters on the returned requests override the client's defaults for a single call. Requests own
/// their parts and may be stored, moved to another task and awaited there.
pub struct Api<K> {
    /// Kind, namespace and client, shared with the requests.
    target: Arc<ApiTarget>,
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
        Self { target: Arc::new(ApiTarget::new(client, info, namespace)), _kind: PhantomData }
    }

    /// Returns the kind. All parts are empty for a kind that only a value knows, if the API was
    /// asked for without a value: every call then fails as
    /// [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage).
    ///
    /// From [`Resource::static_info`], or from [`Client::dynamic`].
    pub fn info(&self) -> &ResourceInfo {
        &self.target.info
    }

    /// Returns the namespace; `None` for all of them, or for a kind without namespaces.
    ///
    /// A restricted client returns the namespace of the restriction.
    pub fn in_namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    /// Returns the client that sends the requests.
    ///
    /// A clone of the client shares connections, credentials and limits.
    pub fn client(&self) -> &Client {
        &self.target.client
    }

    /// Returns an `Api` for the same kind and namespace, metadata only.
    ///
    /// Reads and watches ask the server to leave the rest out, which saves most of the work for
    /// large objects on both sides. Servers without this ability send whole objects, of which the
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

    /// Returns an `Api` for the namespace of `object`, if `self` is for all namespaces.
    fn near(&self, object: &K) -> Self {
        match object.namespace().filter(|_| self.target.namespace.is_none()) {
            Some(namespace) if self.target.info.scope == Scope::Namespaced => {
                let target =
                    ApiTarget { namespace: Some(namespace.to_owned()), ..(*self.target).clone() };
                Self { target: Arc::new(target), _kind: PhantomData }
            }
            _ => self.clone(),
        }
    }

    /// Reads a single object. [`Get::opt`] returns `None` for an object that does not exist.
    ///
    /// The newest state, by a consistent read, unless [`Get::resource_version`] accepts an older
    /// state.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let map = client.namespace::<ConfigMap>("shop").get("settings").await?;
    /// println!("{:?}", map.data);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, name: &str) -> Get<K> {
        Get::new(Draft::named(&self.target, Verb::Get, name), decode::object)
    }

    /// Reads a single object; `None` when the object does not exist.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let secrets = client.namespace::<Secret>("shop");
    /// if secrets.get_opt("tls").await?.is_none() {
    ///     println!("there is no certificate yet");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Client::send`], without `NotFound`.
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        self.get(name).opt().await
    }

    /// Reads a single object's metadata; see [`metadata`](Self::metadata).
    ///
    /// For checks of existence, labels and owners of large objects. Errors and cancel safety are
    /// those of [`Get`].
    pub fn get_metadata(&self, name: &str) -> Get<PartialObject> {
        let draft = Draft::named(&self.target, Verb::Get, name);
        Get::new(draft.only_metadata(), decode::object)
    }

    /// Reads the collection, page by page, unless a [limit](List::limit) asks for a single page; or
    /// as a [stream](List::stream).
    ///
    /// 500 objects a page by default. The pages together are of a single version of the collection:
    /// if the server forgets that version in between, the list begins anew as a single answer.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let pods = client.namespace::<Pod>("shop").list().labels("app=web").await?;
    /// println!("{} Pods at version {}", pods.items.len(), pods.resource_version);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> List<K> {
        List::new(Draft::collection(&self.target, Verb::List))
    }

    /// Follows changes of the collection.
    ///
    /// A single connection, which the server ends after some minutes; [`Watch::resuming`] goes on
    /// from the last version. A cache of a kind is the task of an informer.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::api::WatchEvent;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let mut events = client.namespace::<Pod>("shop").watch().await?;
    /// while let Some(event) = events.next().await {
    ///     match event? {
    ///         WatchEvent::Added(pod) | WatchEvent::Modified(pod) => println!("{:?}", pod.status),
    ///         WatchEvent::Deleted(pod) => println!("gone: {:?}", pod.metadata.name),
    ///         WatchEvent::Bookmark { .. } => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self) -> Watch<K> {
        Watch::new(Draft::collection(&self.target, Verb::Watch))
    }

    /// Creates `object`, by name or `generateName`; the answer carries the generated name.
    ///
    /// The errors are those of [`Write`], and
    /// [`AlreadyExists`](windlass_core::ErrorKind::AlreadyExists) when the name is taken. A
    /// creation whose answer is lost is [`Ambiguous`](windlass_core::ErrorKind::Ambiguous): the
    /// creation is not repeated, because with a `generateName` a repetition would create a second
    /// object.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let mut map = ConfigMap::default();
    /// map.metadata.generate_name = Some("settings-".into());
    /// let created = client.namespace::<ConfigMap>("shop").create(&map).await?;
    /// println!("{:?}", created.metadata.name);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(&self, object: &K) -> Write<K>
    where
        K: FullObject,
    {
        Write::new(
            Draft::create(&self.target, object.metadata(), draft::json(object)),
            decode::object,
        )
    }

    /// Replaces the object of the same name. With a resourceVersion, which must be the stored
    /// version (otherwise [`Conflict`](windlass_core::ErrorKind::Conflict)). Without a
    /// resourceVersion most built-in kinds are replaced whatever is stored, and custom resources
    /// are refused.
    ///
    /// Fields that are absent in `object` are removed from the stored object. With a
    /// resourceVersion the call is repeated after lost answers, since a second execution would be
    /// refused.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let maps = client.namespace::<ConfigMap>("shop");
    /// let mut map = maps.get("settings").await?;
    /// map.data = None;
    /// match maps.replace(&map).await {
    ///     Err(error) if error.is_conflict() => println!("another writer was first"),
    ///     result => drop(result?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(&self, object: &K) -> Write<K>
    where
        K: FullObject,
    {
        Write::new(
            Draft::replace(&self.target, object.metadata(), draft::json(object)),
            decode::object,
        )
    }

    /// Patches an object, in a format of [`Patch`].
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use serde_json::json;
    /// # use windlass::api::Patch;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let paused = Patch::Merge(json!({ "spec": { "paused": true } }));
    /// client.namespace::<Deployment>("shop").patch("web", paused).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch(&self, name: &str, patch: Patch) -> Write<K> {
        Write::new(Draft::patch(&self.target, name, patch), decode::object)
    }

    /// Server-side apply of `intent`, which contains only the fields that this field manager wants.
    /// Missing `apiVersion`, `kind` and name are added; `managedFields` are left out. The intent is
    /// the kind itself, its apply configuration, such as `WebsiteApply`, or JSON.
    ///
    /// A field that an earlier apply of this manager set and this apply leaves out is removed,
    /// unless another manager owns the field as well. A field that another manager owns is a
    /// [`Conflict`](windlass_core::ErrorKind::Conflict), until [`Write::force`] takes the field
    /// over. The object is created if there is none. An apply may be repeated, and is, after every
    /// failure that leaves the fate of the apply unknown.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use serde_json::json;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let maps = client.namespace::<ConfigMap>("shop");
    /// let wanted = json!({ "data": { "color": "red" } });
    /// maps.apply("settings", &wanted).manager("shop-operator").force().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn apply<I: ApplyIntent<K, Form>, Form>(&self, name: &str, intent: &I) -> Write<K> {
        Write::new(Draft::apply(&self.target, name, serde_json::to_value(intent)), decode::object)
    }

    /// Server-side apply of the status in `intent`: [`apply`](Self::apply) with [`Write::status`].
    ///
    /// The kind must have the subresource `status`, otherwise
    /// [`NotFound`](windlass_core::ErrorKind::NotFound).
    pub fn apply_status<I: ApplyIntent<K, Form>, Form>(&self, name: &str, intent: &I) -> Write<K> {
        self.apply(name, intent).status()
    }

    /// Deletes an object; the answer says whether the object is gone or
    /// [waits](Deletion::Terminating).
    ///
    /// The kind decides which finalizers and grace period hold an object;
    /// [`wait_deleted`](Self::wait_deleted) waits for the object's end.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass::api::Deletion;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// match client.namespace::<Pod>("shop").delete("web-0").await? {
    ///     Deletion::Gone { uid } => println!("{uid} is gone"),
    ///     Deletion::Terminating(pod) => println!("{:?} is ending", pod.metadata.name),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete(&self, name: &str) -> Delete<K> {
        Delete::new(Draft::named(&self.target, Verb::Delete, name))
    }

    /// Deletes the objects that the selectors match, in a single namespace; all objects without a
    /// selector.
    ///
    /// A single request; the server deletes the objects in sequence, not atomically.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// client.namespace::<ConfigMap>("shop").delete_collection().labels("run=17").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_collection(&self) -> DeleteCollection {
        DeleteCollection::new(Draft::collection(&self.target, Verb::DeleteCollection))
    }
}
