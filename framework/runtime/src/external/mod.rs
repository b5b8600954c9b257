//! Resources outside of the cluster: databases, DNS records, buckets.
//!
//! An [`External`] knows the provider: it observes, creates, updates and deletes one resource.
//! [`Externals`] drives it by a fixed loop, from a reconciler or as a whole controller
//! ([`ExternalController`]), so that a crash between any two steps neither creates a resource twice
//! nor loses one.
//!
//! The order of a creation: the finalizer is on the object, the create is recorded as pending, the
//! provider is called, the id is recorded. A pending creation without an outcome is searched for by
//! its token before anything else happens; a provider that cannot search stops there, until a
//! person settles the record.
//!
//! | annotation | written by | meaning |
//! |---|---|---|
//! | [`EXTERNAL_NAME`] | loop, or a person | id of the resource; set by hand it imports an existing one |
//! | [`CREATE_PENDING`] | loop | time and token of the last creation, written before the call |
//! | [`CREATE_SUCCEEDED`] | loop | time, token and id of a creation that succeeded |
//! | [`CREATE_FAILED`] | loop | time and token of a creation that the provider refused |
//! | `windlass.dev/external-import-accepted` | loop | uid of the object and id of an import |
//! | [`EXTERNAL_POLICY`] | a person | restrictions: see [`ExternalPolicy`] |
//! | [`EXTERNAL_DRIVER`] | loop | controller and finalizer of a resource that is a field of a graph |
//!
//! The keys of further resources have a suffix: `.NAME` of a driver with a
//! [name](Externals::named), `_PART` of a [part](Externals::part).
//!
//! Invariants: no call that changes a resource is made without the finalizer on the object; a
//! create is called only after a patch upon the version whose annotations were read; a token is
//! repeated only while the outcome of its creation is unknown. All state is on the object: the
//! memory of the process saves questions to people, never correctness.

// DESIGN.md, 163: A creation outside is recorded before its call, with a token

mod call;
mod cleanup;
mod controller;
mod driver;
mod dry_run;
mod error;
mod import;
mod late_initialization;
mod memory;
mod pass;
mod policy;
mod reconcile;
mod record;
mod settings;
#[cfg(test)]
mod tests;
mod unowned;

pub use self::controller::ExternalController;
pub use self::driver::ExternalPart;
pub use self::error::CreateError;
pub use self::policy::ExternalPolicy;
pub use self::record::{
    CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_DRIVER, EXTERNAL_NAME,
    EXTERNAL_POLICY,
};
pub use self::settings::Externals;

use std::future::Future;
use std::ops::Deref;

use serde_json::Value;

use crate::controller::{Context, Result};
use windlass_core::resource::FullObject;

/// A kind of resource outside of the cluster, and the calls of its provider.
///
/// The calls are made by [`Externals`], each with a deadline, after a permit of the rate limiter
/// and counted in `windlass_external_calls_total`. A call is dropped at its deadline and when the
/// reconcile is dropped: its effect may take place all the same.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::external::{CreateError, CreateOutcome, External, ExternalObject, ObservedResource};
/// use windlass::controller::Result;
///
/// /// Buckets of a storage service; each has the name that its map says.
/// struct Buckets {
///     service: Service,
/// }
/// # struct Service;
/// # struct Bucket { is_public: bool }
/// # impl Service {
/// #     async fn bucket(&self, _: &str) -> Result<Option<Bucket>> { Ok(None) }
/// #     async fn tagged(&self, _: &str) -> Result<Option<String>> { Ok(None) }
/// #     async fn make(&self, _: &str) -> Result<String> { Ok("b-1".to_owned()) }
/// #     async fn protect(&self, _: &str) -> Result<()> { Ok(()) }
/// #     async fn delete(&self, _: &str) -> Result<()> { Ok(()) }
/// # }
///
/// impl External for Buckets {
///     type Object = ConfigMap;
///     type Handle = ();
///     const FINALIZER: &'static str = "example.dev/bucket";
///
///     async fn observe(&self, _: &ExternalObject<'_, ConfigMap>, id: &str) -> Result<ObservedResource<()>> {
///         Ok(match self.service.bucket(id).await? {
///             None => ObservedResource::Missing,
///             Some(bucket) if bucket.is_public => ObservedResource::Drifted((), "it is public".to_owned()),
///             Some(_) => ObservedResource::UpToDate(()),
///         })
///     }
///
///     async fn create(
///         &self,
///         _: &ExternalObject<'_, ConfigMap>,
///         token: &str,
///     ) -> Result<String, CreateError> {
///         // The service keeps the token as a tag.
///         Ok(self.service.make(token).await?)
///     }
///
///     async fn find_created(
///         &self,
///         _: &ExternalObject<'_, ConfigMap>,
///         token: &str,
///     ) -> Result<CreateOutcome> {
///         let found = self.service.tagged(token).await?;
///         Ok(found.map_or(CreateOutcome::Missing, CreateOutcome::Created))
///     }
///
///     async fn update(&self, _: &ExternalObject<'_, ConfigMap>, id: &str, _: &()) -> Result<()> {
///         self.service.protect(id).await
///     }
///
///     async fn delete(&self, _: &ExternalObject<'_, ConfigMap>, id: &str, _: &()) -> Result<()> {
///         self.service.delete(id).await
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of external resource",
    note = "implement `windlass::external::External`: observe, create, update and delete"
)]
pub trait External: Send + Sync + Sized + 'static {
    /// The kind whose objects stand for the resources.
    type Object: FullObject;

    /// State of a resource as it was observed, for updates, deletions and the status of the object.
    type Handle: Send + Sync;

    /// The finalizer of the controller, qualified by a domain: `example.dev/bucket`. Nothing is
    /// created or changed for an object without it.
    const FINALIZER: &'static str;

    /// Reads the resource of that id and compares it with the object.
    ///
    /// The id comes from an annotation, so from any author of the object: quote it where it becomes
    /// a part of a statement or a path. A provider that keeps the token as a tag returns an error
    /// for a resource whose tag does not begin with the uid of the object, unless imports are
    /// wanted; nothing is changed or deleted then.
    ///
    /// A resource whose deletion is under way is not missing yet.
    ///
    /// # Errors
    /// Any error; the object is reconciled again with backoff.
    fn observe(
        &self,
        object: &ExternalObject<'_, Self::Object>,
        id: &str,
    ) -> impl Future<Output = Result<ObservedResource<Self::Handle>>> + Send;

    /// Creates the resource and returns its id, 1 to 1024 bytes long.
    ///
    /// `token` is unique for each creation: the uid of the object, `-`, and 16 hexadecimal digits.
    /// It is repeated while the outcome of a creation is unknown, and never otherwise; a provider
    /// with idempotency tokens takes it as such, others keep it as a tag for
    /// [`find_created`](Self::find_created). A resource that exists already is an error, never
    /// taken over: people import it by the annotation [`EXTERNAL_NAME`].
    ///
    /// # Errors
    /// `?` makes an error of unknown outcome of every error: the resource may have been created. An
    /// answer that proves the opposite is [`CreateError::refused`]. When a repeated token is
    /// refused, the resource is searched for once more: the refusal may be about the resource that
    /// an earlier call with the token made.
    fn create(
        &self,
        object: &ExternalObject<'_, Self::Object>,
        token: &str,
    ) -> impl Future<Output = Result<String, CreateError>> + Send;

    /// Searches for the resource that a creation with that token made, after a crash or a lost
    /// answer.
    ///
    /// Default: [`CreateOutcome::Unknown`], with which the object stops until a person settles it.
    /// A name that follows from the object alone is an answer, too, if the provider shows who
    /// created the resource.
    ///
    /// # Errors
    /// Any error; the object is reconciled again with backoff.
    fn find_created(
        &self,
        object: &ExternalObject<'_, Self::Object>,
        token: &str,
    ) -> impl Future<Output = Result<CreateOutcome>> + Send {
        let _ = (object, token);
        async { Ok(CreateOutcome::Unknown) }
    }

    /// Makes the resource match the object, after [`ObservedResource::Drifted`].
    ///
    /// It must be repeatable: it is called again for as long as a difference is observed.
    ///
    /// # Errors
    /// Any error; the object is reconciled again with backoff.
    fn update(
        &self,
        object: &ExternalObject<'_, Self::Object>,
        id: &str,
        handle: &Self::Handle,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Deletes the resource, or begins to.
    ///
    /// It must be repeatable: it is called again until [`observe`](Self::observe) returns
    /// [`ObservedResource::Missing`].
    ///
    /// # Errors
    /// Any error; the object stays, and is cleaned up again with backoff.
    fn delete(
        &self,
        object: &ExternalObject<'_, Self::Object>,
        id: &str,
        handle: &Self::Handle,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Returns values for fields of the spec that are empty, as a part of the spec:
    /// `json!({ "size": handle.size })`.
    ///
    /// Fields that have a value are left alone, so the whole observed spec may be returned. Only
    /// whole fields of the spec are filled: an object or list that is there is left as it is, since
    /// a key that was removed from it would come back. A field that is removed from the spec is
    /// filled again. Default: `None`. Asked after each observation, unless the policy forbids
    /// updates.
    fn late_initialize(
        &self,
        object: &ExternalObject<'_, Self::Object>,
        handle: &Self::Handle,
    ) -> Option<Value> {
        let _ = (object, handle);
        None
    }

    /// Names what the ids of an object are relative to, such as a server or a region of its spec:
    /// equal ids of objects with different scopes are different resources. Default: the empty text,
    /// ids are unique for the provider.
    ///
    /// An id that is set by hand is refused while another object, or another part of the object,
    /// has the same resource.
    fn id_scope(&self, object: &ExternalObject<'_, Self::Object>) -> String {
        let _ = object;
        String::new()
    }

    /// Writes the state of the resource into the status of the object. Called by
    /// [`ExternalController`] after each reconcile that ended without an error or a wait. Default:
    /// nothing.
    ///
    /// # Errors
    /// Any error; the object is reconciled again with backoff.
    fn report(
        &self,
        state: &ExternalState<Self::Handle>,
        cx: &Context<ExternalController<Self>>,
    ) -> impl Future<Output = Result<()>> + Send {
        let _ = (state, cx);
        async { Ok(()) }
    }
}

/// Result of an observation: the state of the resource beside the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservedResource<H> {
    /// No resource has that id.
    Missing,
    /// The resource matches the object.
    UpToDate(H),
    /// The resource differs from the object; the text names the differences, for people.
    Drifted(H, String),
}

/// Outcome of a creation that was searched for by its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreateOutcome {
    /// It succeeded; the id of the resource.
    Created(String),
    /// No resource has that token.
    Missing,
    /// The provider cannot search.
    Unknown,
}

/// State of a resource after a reconcile that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalState<H> {
    /// Id of the resource, as the provider returned it.
    pub id: String,
    /// The resource as it was observed last.
    pub handle: H,
    /// Differences from the object that the policy forbids to repair.
    pub difference: Option<String>,
}

/// The reconciled object in a call of its provider, and the part of it that the call is about.
/// Dereferences to the object.
#[derive(Debug)]
pub struct ExternalObject<'a, K> {
    pub(crate) object: &'a K,
    pub(crate) part: &'a str,
}

impl<K> ExternalObject<'_, K> {
    /// Returns the name of the part; empty for the main resource of the object.
    pub fn part(&self) -> &str {
        self.part
    }
}

impl<K> Deref for ExternalObject<'_, K> {
    type Target = K;

    fn deref(&self) -> &K {
        self.object
    }
}
