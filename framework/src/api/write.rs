//! Writes: create, replace, patch, apply, delete.

use std::fmt;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::ApiFuture;
use super::decode::decode;
use super::draft::Draft;
use crate::client::Verb;
use crate::error::Error;
use crate::resource::Resource;

/// A change to an object.
#[derive(Clone, Debug)]
pub enum Patch {
    /// JSON merge patch (RFC 7386).
    Merge(Value),
    /// JSON patch (RFC 6902): an array of operations.
    Json(Value),
    /// Strategic merge patch; built-in kinds only.
    Strategic(Value),
}

impl Patch {
    pub(crate) fn body(&self) -> &Value {
        match self {
            Self::Merge(body) | Self::Json(body) | Self::Strategic(body) => body,
        }
    }

    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Self::Merge(_) => "application/merge-patch+json",
            Self::Json(_) => "application/json-patch+json",
            Self::Strategic(_) => "application/strategic-merge-patch+json",
        }
    }

    /// Does it fail when somebody wrote before? Then sending it twice does no harm.
    pub(crate) fn has_precondition(&self) -> bool {
        match self {
            Self::Merge(body) | Self::Strategic(body) => body
                .pointer("/metadata/resourceVersion")
                .and_then(Value::as_str)
                .is_some_and(|version| !version.is_empty()),
            Self::Json(operations) => {
                operations.as_array().into_iter().flatten().any(|operation| {
                    let is = |key: &str, text: &str| operation[key].as_str() == Some(text);
                    is("op", "test") && is("path", "/metadata/resourceVersion")
                })
            }
        }
    }
}

/// A write about to be sent; await it for the object as the server stored it.
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send);
/// [`Usage`](crate::ErrorKind::Usage) for what cannot be sent;
/// [`Conflict`](crate::ErrorKind::Conflict) when somebody wrote before, or (for an apply) owns a
/// field. A write that was sent again after a doubtful failure can end in `Conflict` or `NotFound`
/// because its own first attempt worked; the text says so.
#[must_use = "a request does nothing until it is awaited"]
pub struct Write<K> {
    draft: Draft,
    _kind: PhantomData<fn() -> K>,
}

impl<K> Write<K> {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, _kind: PhantomData }
    }

    /// Writes the subresource `status` instead of the object.
    pub fn status(mut self) -> Self {
        self.draft.set_status();
        self
    }

    /// Who owns the written fields. Default: the client's.
    pub fn manager(mut self, manager: &str) -> Self {
        self.draft.set("fieldManager", manager);
        self
    }

    /// Apply only: takes fields over from other managers.
    pub fn force(mut self) -> Self {
        if self.draft.verb == Verb::Apply {
            self.draft.set("force", "true");
        } else {
            self.draft.refuse("only an apply can be forced");
        }
        self
    }

    /// Checks and answers as usual, stores nothing.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }

    /// Total time for it with all retries. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }
}

impl<K: Resource> IntoFuture for Write<K> {
    type Output = Result<K, Error>;
    type IntoFuture = ApiFuture<'static, K>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let target = self.draft.target.clone();
            let request = self.draft.finish()?;
            let what = request.what.clone();
            decode(&what, &target.client.send(request).await?.body)
        })
    }
}

impl<K> fmt::Debug for Write<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Write").field("verb", &self.draft.verb).finish_non_exhaustive()
    }
}

/// A deletion about to be sent; await it. The object is gone, or waits for its finalizers.
///
/// # Errors
/// Those of [`Client::send`](crate::client::Client::send);
/// [`Conflict`](crate::ErrorKind::Conflict) when a precondition does not hold.
#[must_use = "a request does nothing until it is awaited"]
pub struct Delete {
    draft: Draft,
    preconditions: Map<String, Value>,
    propagation: Option<&'static str>,
}

impl Delete {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft, preconditions: Map::new(), propagation: None }
    }

    fn precondition(mut self, key: &str, value: &str) -> Self {
        if self.draft.verb == Verb::Delete {
            self.preconditions.insert(key.to_owned(), json!(value));
            self.draft.repeatable = true;
        } else {
            self.draft.refuse("a collection has no uid and no resourceVersion to depend on");
        }
        self
    }

    /// Only if the object has this uid.
    pub fn uid(self, uid: &str) -> Self {
        self.precondition("uid", uid)
    }

    /// Only if the object is at this version.
    pub fn resource_version(self, version: &str) -> Self {
        self.precondition("resourceVersion", version)
    }

    /// `Background`, `Foreground` or `Orphan`.
    pub fn propagation(mut self, policy: &'static str) -> Self {
        self.propagation = Some(policy);
        self
    }

    /// Label selector, for collections.
    pub fn labels(self, selector: &str) -> Self {
        self.selector("labelSelector", selector)
    }

    /// Field selector, for collections.
    pub fn fields(self, selector: &str) -> Self {
        self.selector("fieldSelector", selector)
    }

    fn selector(mut self, key: &'static str, selector: &str) -> Self {
        if self.draft.verb == Verb::DeleteCollection {
            self.draft.set(key, selector);
        } else {
            // The server would ignore it and delete the object.
            self.draft.refuse("a selector chooses from a collection; use delete_collection");
        }
        self
    }

    /// Checks and answers as usual, deletes nothing.
    pub fn dry_run(mut self) -> Self {
        self.draft.dry_run();
        self
    }
}

impl Delete {
    /// Sends it; the answer is a `Status` when the object is gone, and mostly the object when it
    /// waits for something.
    pub(crate) async fn answer(mut self) -> Result<Bytes, Error> {
        let mut options = Map::new();
        if !self.preconditions.is_empty() {
            options.insert("preconditions".into(), Value::Object(self.preconditions));
        }
        if let Some(policy) = self.propagation {
            options.insert("propagationPolicy".into(), json!(policy));
        }
        if !options.is_empty() {
            options.insert("apiVersion".into(), json!("v1"));
            options.insert("kind".into(), json!("DeleteOptions"));
            let body = Value::Object(options).to_string();
            self.draft.set_body("application/json", body.into());
        }
        let target = self.draft.target.clone();
        Ok(target.client.send(self.draft.finish()?).await?.body)
    }
}

impl IntoFuture for Delete {
    type Output = Result<(), Error>;
    type IntoFuture = ApiFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.answer().await.map(drop) })
    }
}

impl fmt::Debug for Delete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delete").field("verb", &self.draft.verb).finish_non_exhaustive()
    }
}
