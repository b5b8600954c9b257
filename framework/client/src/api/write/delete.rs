//! Deletions of a single object, and of all objects that selectors match.
//!
//! A repetition after a lost answer finds the object gone. With a uid that is the wanted result,
//! and without a uid the result is indistinguishable from an object that never was: only guarded
//! deletions are repeated.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::ApiFuture;
use crate::api::decode;
use crate::api::draft::Draft;
use windlass_core::error::{ApiStatus, Error};
use windlass_core::resource::{Resource, ResourceInfo};

/// Treatment of the objects that the deleted object owns.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use windlass::api::Propagation;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let deployments = client.namespace::<Deployment>("shop");
/// deployments.delete("web").propagation(Propagation::Foreground).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// The object is deleted first, the garbage collector deletes the owned objects afterwards. The
    /// default of nearly every kind.
    Background,
    /// The object stays, marked for deletion, until the owned objects that block the deletion are
    /// gone.
    Foreground,
    /// The owned objects stay and lose their owner.
    Orphan,
}

impl Propagation {
    /// The policy in the API's spelling.
    ///
    /// In `propagationPolicy` of the `DeleteOptions`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// The API server's answer to a deletion.
///
/// Some kinds (Pods, Services) are answered with their last state although they are gone; that
/// counts as [`Gone`](Self::Gone).
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion<K> {
    /// The object is gone.
    Gone {
        /// Uid of the object; empty when the server did not send a uid.
        uid: String,
    },
    /// The object is marked for deletion, and waits for finalizers, for the grace period or for the
    /// content. [`Api::wait_deleted`](crate::api::Api::wait_deleted) waits for the end.
    Terminating(K),
}

impl<K: Resource> Deletion<K> {
    /// Whether the object is gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    /// Uid of the deleted object; empty when the server did not send a uid.
    pub fn uid(&self) -> &str {
        match self {
            Self::Gone { uid } => uid,
            Self::Terminating(object) => object.metadata().uid.as_deref().unwrap_or_default(),
        }
    }

    /// Reads the answer to `what`: a `Status` means that the object is gone. Some kinds (Pods,
    /// Services, …) answer with their last state even then.
    pub(crate) fn of(what: &str, body: &[u8], info: &ResourceInfo) -> Result<Self, Error> {
        /// The kind of an answer: a `Status` or the object.
        #[derive(Deserialize)]
        struct AnswerKind {
            #[serde(default)]
            kind: String,
        }
        let head: AnswerKind = decode::value(what, body, info)?;
        if head.kind == "Status" {
            let status: ApiStatus = decode::value(what, body, info)?;
            let uid = status.details.map(|details| details.uid).unwrap_or_default();
            return Ok(Self::Gone { uid });
        }
        let object: K = decode::object(what, body, info)?;
        let metadata = object.metadata();
        // A last state with neither finalizers nor grace left was removed with this answer.
        let held = metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty());
        let ended = metadata.deletion_grace_period_seconds == Some(0);
        if metadata.deletion_timestamp.is_some() && (held || !ended) {
            return Ok(Self::Terminating(object));
        }
        Ok(Self::Gone { uid: metadata.uid.clone().unwrap_or_default() })
    }
}

/// The body of a deletion, `DeleteOptions`.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// Uid and resourceVersion that the stored object must have.
    preconditions: Map<String, Value>,
    propagation: Option<Propagation>,
    /// Grace period in seconds.
    grace: Option<u64>,
}

impl Options {
    /// Adds a precondition: a wrong value of `key` makes the deletion fail as a conflict.
    pub(crate) fn precondition(&mut self, key: &str, value: &str) {
        self.preconditions.insert(key.to_owned(), json!(value));
    }

    /// Sets the treatment of owned objects.
    pub(crate) fn propagation(&mut self, policy: Propagation) {
        self.propagation = Some(policy);
    }

    /// Sets the grace period.
    pub(crate) fn grace(&mut self, period: Duration) {
        self.grace = Some(period.as_secs());
    }

    /// The uid among the preconditions.
    fn uid(&self) -> Option<String> {
        self.preconditions.get("uid").and_then(Value::as_str).map(str::to_owned)
    }

    /// Whether the deletion fails when another object or version is stored by now.
    pub(crate) fn is_guarded(&self) -> bool {
        !self.preconditions.is_empty()
    }

    /// The options as JSON; `None` when all are left to the server.
    pub(crate) fn json(self) -> Option<Value> {
        let mut options = Map::new();
        if !self.preconditions.is_empty() {
            options.insert("preconditions".into(), Value::Object(self.preconditions));
        }
        if let Some(policy) = self.propagation {
            options.insert("propagationPolicy".into(), json!(policy.as_str()));
        }
        if let Some(seconds) = self.grace {
            options.insert("gracePeriodSeconds".into(), json!(seconds));
        }
        if options.is_empty() {
            return None;
        }
        options.insert("apiVersion".into(), json!("v1"));
        options.insert("kind".into(), json!("DeleteOptions"));
        Some(Value::Object(options))
    }
}

/// Whether the failure of a repeated deletion by uid shows that this object is gone.
fn shows_it_gone(error: &Error) -> bool {
    let is_another =
        || error.status().is_some_and(|status| status.message.contains("UID in precondition"));
    // Without an ambiguous attempt, a 404 means that there was no such object.
    error.is_ambiguous()
        && (error.code() == Some(404) || (error.code() == Some(409) && is_another()))
}

/// A deletion, sent when awaited; returns [the object's fate](Deletion).
///
/// Without a precondition a deletion whose answer is lost is
/// [`Ambiguous`](windlass_core::ErrorKind::Ambiguous).
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::Pod;
/// # use windlass::resource::ResourceExt;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let pods = client.namespace::<Pod>("shop");
/// let pod = pods.get("web-0").await?;
/// let deleted = pods.delete("web-0").uid(pod.uid()).await?;
/// println!("gone: {}", deleted.is_gone());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send);
/// [`NotFound`](windlass_core::ErrorKind::NotFound) when there is none;
/// [`Conflict`](windlass_core::ErrorKind::Conflict) when a precondition does not hold.
/// # Cancel safety
/// Dropping the future cancels the request; the deletion may have been executed.
#[must_use = "a request does nothing until it is awaited"]
pub struct Delete<K> {
    draft: Draft,
    options: Options,
    _kind: PhantomData<fn() -> K>,
}

impl<K> Delete<K> {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, options: Options::default(), _kind: PhantomData }
    }

    /// Deletes only an object with this uid. The deletion is then safe to repeat: when a repetition
    /// finds the object gone, that is [`Gone`](Deletion::Gone) and no error.
    ///
    /// Another object of that name is a [`Conflict`](windlass_core::ErrorKind::Conflict). Default:
    /// any object of the name.
    pub fn uid(mut self, uid: &str) -> Self {
        self.options.precondition("uid", uid);
        self
    }

    /// Deletes only this version of the object. The deletion is then safe to repeat.
    ///
    /// Any other version is a [`Conflict`](windlass_core::ErrorKind::Conflict). Default: any
    /// version.
    pub fn resource_version(mut self, version: &str) -> Self {
        self.options.precondition("resourceVersion", version);
        self
    }

    /// Treatment of the objects that the deleted object owns. Default: the kind's.
    pub fn propagation(mut self, policy: Propagation) -> Self {
        self.options.propagation(policy);
        self
    }

    /// Longest time for the object to end, in whole seconds; zero ends a Pod without waiting for
    /// the kubelet. Default: the object's.
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.options.grace(period);
        self
    }

    /// Checks and answers as usual, and deletes nothing.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Total time for the call with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Sends the deletion and returns the answer undecoded.
    #[doc(hidden)]
    pub async fn answer(self) -> Result<Bytes, Error> {
        self.finished().answered(|_, _, _| Ok(())).await.map(|((), answer)| answer)
    }

    /// The draft with the options as the body.
    pub(in crate::api) fn finished(mut self) -> Draft {
        // A repetition cannot delete another object or version.
        if self.options.is_guarded() {
            self.draft.repeatable();
        }
        if let Some(options) = self.options.json() {
            self.draft.set_json(&options);
        }
        self.draft
    }
}

impl<K: Resource> IntoFuture for Delete<K> {
    type Output = Result<Deletion<K>, Error>;
    type IntoFuture = ApiFuture<'static, Deletion<K>>;

    fn into_future(self) -> Self::IntoFuture {
        let uid = self.options.uid();
        Box::pin(async move {
            match (self.finished().send(Deletion::of).await, uid) {
                // Deleted by an attempt whose answer was lost, or by another caller meanwhile.
                (Err(error), Some(uid)) if shows_it_gone(&error) => Ok(Deletion::Gone { uid }),
                (result, _) => result,
            }
        })
    }
}

impl<K> fmt::Debug for Delete<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delete")
            .field("draft", &self.draft)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// A deletion of many objects of a single namespace, or of a cluster-scoped kind, sent when
/// awaited. Without a selector all objects are deleted.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::batch::v1::Job;
/// # use windlass::api::Propagation;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let jobs = client.namespace::<Job>("shop");
/// jobs.delete_collection().labels("run=17").propagation(Propagation::Background).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send). After an error some objects may be
/// deleted.
/// # Cancel safety
/// Dropping the future cancels the request; some objects may be deleted.
#[must_use = "a request does nothing until it is awaited"]
pub struct DeleteCollection {
    draft: Draft,
    options: Options,
}

impl DeleteCollection {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, options: Options::default() }
    }

    /// Deletes only objects with these labels, in kubectl's notation.
    pub fn labels(mut self, selector: &str) -> Self {
        self.draft.set("labelSelector", selector);
        self
    }

    /// Deletes only objects with these fields.
    ///
    /// Servers support `metadata.name` and `metadata.namespace` for every kind, and few others.
    pub fn fields(mut self, selector: &str) -> Self {
        self.draft.set("fieldSelector", selector);
        self
    }

    /// Treatment of the objects that they own. Default: the kind's.
    pub fn propagation(mut self, policy: Propagation) -> Self {
        self.options.propagation(policy);
        self
    }

    /// Longest time for each object to end, in whole seconds. Default: the object's.
    pub fn grace_period(mut self, period: Duration) -> Self {
        self.options.grace(period);
        self
    }

    /// Checks and answers as usual, and deletes nothing.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Total time for the call with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Calls `on_response` with the answer, once the call is executed.
    #[doc(hidden)]
    pub fn on_response(mut self, on_response: impl Fn(&Bytes) + Send + Sync + 'static) -> Self {
        self.draft.on_response = Some(Arc::new(on_response));
        self
    }
}

impl IntoFuture for DeleteCollection {
    type Output = Result<(), Error>;
    type IntoFuture = ApiFuture<'static, ()>;

    fn into_future(mut self) -> Self::IntoFuture {
        if let Some(options) = self.options.json() {
            self.draft.set_json(&options);
        }
        Box::pin(self.draft.send(|_, _, _| Ok(())))
    }
}

impl fmt::Debug for DeleteCollection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeleteCollection")
            .field("draft", &self.draft)
            .field("options", &self.options)
            .finish()
    }
}
