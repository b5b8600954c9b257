//! Typed verbs; each returns a request that is awaited.
//!
//! Types exist at the edge only: a call is put together as plain data and its answer is decoded at
//! the end, so that a kind costs little code. What cannot be sent (an empty name, a name with a
//! slash, a namespaced object without a namespace) fails as [`ErrorKind::Usage`] before anything is
//! sent. Not here: caching (informers), reads of metadata only, and subresources other than
//! `status`.
//!
//! [`ErrorKind::Usage`]: crate::ErrorKind::Usage

mod decode;
mod draft;
mod read;
#[cfg(feature = "ws")]
pub mod remote;
#[cfg(test)]
mod tests;
mod watch;
mod write;

pub use read::{List, ObjectList};
pub use watch::{Watch, WatchEvent, WatchStream};
pub use write::{Delete, Patch, Write};

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use serde::Serialize;

use crate::client::{Client, Verb};
use crate::error::Error;
use crate::resource::{Resource, ResourceInfo};
use decode::decode;
use draft::{Draft, Target};

/// What a request resolves to.
pub type ApiFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// One kind in one namespace or in all; cheap to clone.
pub struct Api<K> {
    target: Arc<Target>,
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

    /// The kind. For a kind that only a value knows, asked for without one, all parts are empty, and
    /// every call fails as [`ErrorKind::Usage`](crate::ErrorKind::Usage).
    pub fn info(&self) -> &ResourceInfo {
        &self.target.info
    }

    /// The namespace; `None` means all of them, or that the kind has none.
    pub fn in_namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    /// Reads one object.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when it does not exist, and those of
    /// [`Client::send`].
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        let request = Draft::named(&self.target, Verb::Get, name).finish()?;
        let what = request.what.clone();
        decode(&what, &self.target.client.send(request).await?.body)
    }

    /// Reads one object; `None` when it does not exist.
    ///
    /// # Errors
    /// Those of [`Client::send`], without `NotFound`.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the collection, page by page, unless a [limit](List::limit) asks for one page.
    pub fn list(&self) -> List<K> {
        List::new(Draft::collection(&self.target, Verb::List))
    }

    /// Follows changes of the collection.
    pub fn watch(&self) -> Watch<K> {
        Watch::new(Draft::collection(&self.target, Verb::Watch))
    }

    /// Creates `object`. With a name or a `generateName`; the answer carries what the server chose.
    pub fn create(&self, object: &K) -> Write<K> {
        Write::new(Draft::create(&self.target, object.metadata(), draft::json(object)))
    }

    /// Replaces the object of that name; its resourceVersion must be the stored one.
    pub fn replace(&self, object: &K) -> Write<K> {
        Write::new(Draft::replace(&self.target, object.metadata(), draft::json(object)))
    }

    /// Patches an object.
    pub fn patch(&self, name: &str, patch: Patch) -> Write<K> {
        Write::new(Draft::patch(&self.target, name, patch))
    }

    /// Server-side apply of `intent`, which names only what this field manager wants. `apiVersion`,
    /// `kind` and the name are added where it lacks them; `managedFields` are left out.
    pub fn apply<T: Serialize>(&self, name: &str, intent: &T) -> Write<K> {
        Write::new(Draft::apply(&self.target, name, serde_json::to_value(intent)))
    }

    /// Deletes an object.
    pub fn delete(&self, name: &str) -> Delete {
        Delete::new(Draft::named(&self.target, Verb::Delete, name))
    }

    /// Deletes what the selectors match, in one namespace.
    pub fn delete_collection(&self) -> Delete {
        Delete::new(Draft::collection(&self.target, Verb::DeleteCollection))
    }
}
