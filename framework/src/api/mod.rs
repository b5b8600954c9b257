//! Typed verbs; each returns a request that is awaited.

use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

use serde::Serialize;
use serde_json::Value;

use crate::error::Error;
use crate::resource::{Resource, ResourceInfo};

/// What a request resolves to.
pub type ApiFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// One kind in one namespace or in all; cheap to clone.
#[derive(Clone, Debug)]
pub struct Api<K> {
    _kind: PhantomData<fn() -> K>,
}

/// A page or a whole list.
#[derive(Clone, Debug)]
pub struct ObjectList<K> {
    /// The objects.
    pub items: Vec<K>,
    /// The version of the collection that this shows.
    pub resource_version: String,
    /// Token of the next page; `None` on the last one.
    pub continue_token: Option<String>,
}

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

/// A write about to be sent; await it.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct Write<K> {
    _kind: PhantomData<fn() -> K>,
}

/// A list about to be requested; await it.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct List<K> {
    _kind: PhantomData<fn() -> K>,
}

/// A deletion about to be sent; await it.
#[derive(Debug)]
#[must_use = "a request does nothing until it is awaited"]
pub struct Delete {
    _todo: (),
}

#[allow(unused_variables, clippy::unimplemented)]
impl<K: Resource> Api<K> {
    /// The kind.
    pub fn info(&self) -> &ResourceInfo {
        unimplemented!()
    }

    /// Reads one object.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        unimplemented!()
    }

    /// Reads one object; `None` when it does not exist.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        unimplemented!()
    }

    /// Reads the collection.
    pub fn list(&self) -> List<K> {
        unimplemented!()
    }

    /// Creates `object`.
    pub fn create(&self, object: &K) -> Write<K> {
        unimplemented!()
    }

    /// Replaces the object of that name; its resourceVersion must be the stored one.
    pub fn replace(&self, object: &K) -> Write<K> {
        unimplemented!()
    }

    /// Patches an object.
    pub fn patch(&self, name: &str, patch: Patch) -> Write<K> {
        unimplemented!()
    }

    /// Server-side apply of `intent`, which names only what this field manager wants.
    pub fn apply<T: Serialize>(&self, name: &str, intent: &T) -> Write<K> {
        unimplemented!()
    }

    /// Deletes an object.
    pub fn delete(&self, name: &str) -> Delete {
        unimplemented!()
    }

    /// Deletes what the selectors match.
    pub fn delete_collection(&self) -> Delete {
        unimplemented!()
    }
}

#[allow(unused_variables, clippy::unimplemented)]
impl<K> Write<K> {
    /// Writes the subresource `status` instead of the object.
    pub fn status(self) -> Self {
        unimplemented!()
    }

    /// Who owns the written fields. Default: the client's.
    pub fn manager(self, manager: &str) -> Self {
        unimplemented!()
    }

    /// Apply only: takes fields over from other managers.
    pub fn force(self) -> Self {
        unimplemented!()
    }

    /// Checks and answers as usual, stores nothing.
    pub fn dry_run(self) -> Self {
        unimplemented!()
    }
}

#[allow(unused_variables, clippy::unimplemented)]
impl<K> List<K> {
    /// Label selector, in kubectl's notation.
    pub fn labels(self, selector: &str) -> Self {
        unimplemented!()
    }

    /// Field selector.
    pub fn fields(self, selector: &str) -> Self {
        unimplemented!()
    }

    /// At most so many objects a page.
    pub fn limit(self, limit: u32) -> Self {
        unimplemented!()
    }

    /// The page after an earlier one.
    pub fn continue_token(self, token: &str) -> Self {
        unimplemented!()
    }
}

#[allow(unused_variables, clippy::unimplemented)]
impl Delete {
    /// Only if the object has this uid.
    pub fn uid(self, uid: &str) -> Self {
        unimplemented!()
    }

    /// Only if the object is at this version.
    pub fn resource_version(self, version: &str) -> Self {
        unimplemented!()
    }

    /// `Background`, `Foreground` or `Orphan`.
    pub fn propagation(self, policy: &'static str) -> Self {
        unimplemented!()
    }

    /// Label selector, for collections.
    pub fn labels(self, selector: &str) -> Self {
        unimplemented!()
    }
}

#[allow(clippy::unimplemented)]
impl<K: Resource> IntoFuture for Write<K> {
    type Output = Result<K, Error>;
    type IntoFuture = ApiFuture<'static, K>;

    fn into_future(self) -> Self::IntoFuture {
        unimplemented!()
    }
}

#[allow(clippy::unimplemented)]
impl<K: Resource> IntoFuture for List<K> {
    type Output = Result<ObjectList<K>, Error>;
    type IntoFuture = ApiFuture<'static, ObjectList<K>>;

    fn into_future(self) -> Self::IntoFuture {
        unimplemented!()
    }
}

#[allow(clippy::unimplemented)]
impl IntoFuture for Delete {
    type Output = Result<(), Error>;
    type IntoFuture = ApiFuture<'static, ()>;

    fn into_future(self) -> Self::IntoFuture {
        unimplemented!()
    }
}
