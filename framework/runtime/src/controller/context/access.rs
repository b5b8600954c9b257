//! Reads and writes of other objects, limited to the controller's grants.
//!
//! The bounds (`CanGet`, `CanList`, …) are implemented by the derive from the controller's
//! attributes, so a request without a permission does not compile. Each method boxes its future:
//! the type of the future then depends on the kind only, and not on the controller.

use super::{is_controlled_by, is_namespaced};
use crate::controller::state::{WriteEffect, WrittenKind};
use crate::controller::{Context, Reconciler};
use windlass_cache::store::Store;
use windlass_client::api::{Api, ApiFuture, Delete, Patch};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::{
    CanCache, CanCreate, CanDelete, CanGet, CanList, CanPatch, CanUpdate, OwnsCache,
};
use windlass_core::resource::{FullObject, ObjectKey, Resource, ResourceExt, Selector};

impl<C: Reconciler> Context<C> {
    /// Returns the API of kind `K` in the object's namespace (in all namespaces when the object or
    /// `K` has none), for requests that the checked methods do not cover. An escape hatch: no grant
    /// is checked at compile time, so uses of the API have to be listed in `can(…)` to be in the
    /// manifest. A clone of the API behaves as a clone of [`client`](Self::client).
    pub fn api<K: Resource>(&self) -> Api<K> {
        self.nearby_by(self.client())
    }

    /// Reads an object in the object's namespace from the API server.
    ///
    /// For objects that must be read as the API server has them now; [`store_of`](Self::store_of)
    /// and [`watched`](Self::watched) read caches without a request.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](windlass_core::ErrorKind::NotFound), and any error of the API
    /// server.
    /// # Cancel safety
    /// Dropping the future cancels the request; nothing is written.
    pub fn get<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, K>
    where
        C: CanGet<K>,
    {
        // The boxed future has no `C` in its type: a missing grant is reported once, at the place
        // of the call.
        Box::pin(async move { self.nearby::<K>().get(name).await })
    }

    /// Reads an object in the object's namespace from the API server; `None` when there is none.
    ///
    /// # Errors
    /// Any error of the API server.
    /// # Cancel safety
    /// As [`get`](Self::get).
    pub fn get_opt<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, Option<K>>
    where
        C: CanGet<K>,
    {
        Box::pin(async move { self.nearby::<K>().get_opt(name).await })
    }

    /// Lists the objects in the object's namespace that `labels` matches, from the API server.
    ///
    /// The empty selector lists all. The whole list is in memory at once; for very large lists use
    /// the pages of [`api`](Self::api).
    ///
    /// # Errors
    /// Any error of the API server.
    /// # Cancel safety
    /// As [`get`](Self::get).
    pub fn list<'a, K: Resource>(&'a self, labels: &'a Selector) -> ApiFuture<'a, Vec<K>>
    where
        C: CanList<K>,
    {
        Box::pin(async move {
            let mut list = self.nearby::<K>().list();
            if !labels.is_empty() {
                list = list.labels(&labels.to_string());
            }
            Ok(list.await?.items)
        })
    }

    /// Creates an object in the object's namespace, without making the object a child (see
    /// [`create_owned`](Self::create_owned)).
    ///
    /// The created object is visible in the caches at once and counts among the
    /// [`expectations`](Self::expectations) until the watch has delivered the object.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`](windlass_core::ErrorKind::AlreadyExists), and any error of the
    /// API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the object may have been created.
    pub fn create<'a, K: FullObject>(&'a self, object: &'a K) -> ApiFuture<'a, K>
    where
        C: CanCreate<K>,
    {
        Box::pin(async move { self.send_create(&self.nearby(), object).await })
    }

    /// Replaces an object in the object's namespace by `object`, which has to carry the
    /// resourceVersion of the state that it was derived from. The status is not written where it is
    /// a subresource.
    ///
    /// A replace of the reconciled object does not cause another reconcile, because the version
    /// before the write is known.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](windlass_core::ErrorKind::Conflict) when another client wrote since,
    /// and any error of the API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the write may have been executed.
    pub fn replace<'a, K: FullObject>(&'a self, object: &'a K) -> ApiFuture<'a, K>
    where
        C: CanUpdate<K>,
    {
        Box::pin(async move {
            let key = self.key_of(object);
            let write = self.nearby::<K>().replace(object);
            let (replaced, answer) = self.answered(write, ("update", &key)).await?;
            // The API server accepts a replace only upon the version in the object.
            match object.resource_version() {
                from if self.is_own(object) && !from.is_empty() => {
                    self.wrote_upon(from, &replaced, &answer)
                }
                _ => self.wrote(WriteEffect::Changed, &replaced, &answer),
            }
            Ok(replaced)
        })
    }

    /// Sends a create and puts the answer into the cache. The fate of a child with a generated name
    /// is recorded in any case: a reconcile that counts children depends on that record.
    pub(super) async fn send_create<K: FullObject>(
        &self,
        api: &Api<K>,
        child: &K,
    ) -> Result<K, Error> {
        let clock = &self.shared.environment.clock;
        let is_unnamed = child.name().is_empty() && is_controlled_by(child, self.object.uid());
        let kind = WrittenKind::of::<K>().filter(|_| is_unnamed && !self.is_dry_run());
        let expectations = &self.shared.memory.applied.expectations;
        // Before the request: the watch may show the child before the answer comes.
        let create = kind.map(|kind| expectations.creating(self.parent_ref(), kind, clock.now()));
        let written = self.answered(api.create(child), ("create", &self.key_of(child))).await;
        match (written, create) {
            (Ok((created, answer)), Some(create)) => {
                self.show::<K>(&answer);
                let key = created.key().in_cluster(self.key.cluster());
                create.succeeded(&key, created.uid(), clock.now());
                Ok(created)
            }
            (Ok((created, answer)), None) => {
                self.wrote(WriteEffect::Created, &created, &answer);
                Ok(created)
            }
            (Err(error), create) => {
                if let Some(create) = create.filter(|_| is_refusal(&error)) {
                    create.refused();
                }
                Err(error)
            }
        }
    }

    /// Patches an object in the object's namespace. A patch of the reconciled object causes another
    /// reconcile, because the version under the patch is not known. [`patcher`](Self::patcher)
    /// avoids that.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](windlass_core::ErrorKind::NotFound), and any error of the API
    /// server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the patch may have been executed.
    pub fn patch<'a, K: Resource>(&'a self, name: &'a str, patch: Patch) -> ApiFuture<'a, K>
    where
        C: CanPatch<K>,
    {
        Box::pin(async move {
            let key = self.near_key::<K>(name);
            let write = self.nearby::<K>().patch(name, patch);
            let (patched, answer) = self.answered(write, ("patch", &key)).await?;
            self.wrote(WriteEffect::Changed, &patched, &answer);
            Ok(patched)
        })
    }

    /// Deletes an object in the object's namespace; a missing object is no error.
    ///
    /// An object with finalizers is marked for deletion and stays until they are removed. For
    /// children use [`delete_owned`](Self::delete_owned), which checks the owner first.
    ///
    /// # Errors
    /// Any error of the API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the object may be gone.
    pub fn delete<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, ()>
    where
        C: CanDelete<K>,
    {
        Box::pin(async move {
            let key = self.near_key::<K>(name);
            self.send_delete::<K>(&key, self.nearby::<K>().delete(name)).await
        })
    }

    /// Sends a deletion and applies the deletion to the cache; a missing object is no error.
    pub(super) async fn send_delete<K: Resource>(
        &self,
        key: &ObjectKey,
        delete: Delete<K>,
    ) -> Result<(), Error> {
        // Read before the request: an object that is cached now is gone if the answer is a 404.
        let known = self.cached_uid::<K>(key);
        let pending = self.before_write::<K>("delete", key);
        match delete.answer().await {
            Ok(answer) => {
                self.after_write(pending, &answer);
                self.deleted::<K>(key, &answer);
                Ok(())
            }
            Err(error) if error.code() == Some(404) => {
                if let Some(uid) = known {
                    self.note_gone::<K>(key, &uid);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Whether `object` is the reconciled object, of any type.
    pub(super) fn is_own<K: Resource>(&self, object: &K) -> bool {
        let kind = K::static_info().map(|info| info.group_resource());
        kind.is_some_and(|kind| kind == self.shared.info.group_resource())
            && object.name() == self.key.name()
            && object.namespace().is_none_or(|namespace| Some(namespace) == self.key.namespace())
    }

    /// Returns the key of an object, in the namespace that [`api`](Self::api) uses if the object
    /// names none.
    pub(super) fn key_of<K: Resource>(&self, object: &K) -> ObjectKey {
        match object.namespace() {
            Some(namespace) => {
                ObjectKey::new(Some(namespace), object.name()).in_cluster(self.key.cluster())
            }
            None => self.near_key::<K>(object.name()),
        }
    }

    /// Returns the key of this name and kind `K` in the namespace that [`api`](Self::api) uses.
    pub(crate) fn near_key<K: Resource>(&self, name: &str) -> ObjectKey {
        let namespace = self.key.namespace().filter(|_| is_namespaced::<K>());
        ObjectKey::new(namespace, name).in_cluster(self.key.cluster())
    }

    /// The cache of an owned kind.
    ///
    /// The kind needs `owns(…)`, which also starts the kind's cache before the first reconcile. The
    /// store shows children of all objects: filter them by [`Store::owned_by`].
    pub fn store_of<K: Resource>(&self) -> Store<K>
    where
        C: OwnsCache<K>,
    {
        self.shared.informers.pinned::<K>().store()
    }

    /// The cache of a kind that the controller watches, by `watches(…)` or by
    /// `can(list watch …)`, in all namespaces of the operator. The cache is filled before the
    /// first reconcile. Without `watches(…)` changes of these objects reconcile nothing.
    ///
    /// Own writes to these objects are visible at once.
    pub fn watched<K: Resource>(&self) -> Store<K>
    where
        C: CanCache<K>,
    {
        self.shared.informers.pinned::<K>().store()
    }
}

/// Whether certainly nothing was created. The client marks requests that may have been executed as
/// ambiguous; an answer that does not decode proves an execution.
fn is_refusal(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Ambiguous | ErrorKind::Decode)
}
