//! Reading and writing other objects, as far as the controller was granted it.

use super::children::is_controlled_by;
use super::is_namespaced;
use crate::api::{Api, ApiFuture, Delete, Patch};
use crate::controller::expectations::{Kind, What};
use crate::controller::{Context, Reconciler};
use crate::error::{Error, ErrorKind};
use crate::rbac::{
    CanCreate, CanDelete, CanGet, CanList, CanPatch, CanUpdate, CanWatch, OwnsCache,
};
use crate::resource::{ObjectKey, Resource, ResourceExt, Selector, Whole};
use crate::store::Store;

impl<C: Reconciler> Context<C> {
    /// Kind `K` in the object's namespace (in all, when the object or `K` has none), for what the
    /// checked methods do not cover. An escape hatch: no grant is checked at compile time, so what
    /// you use it for has to stand in `can(…)` to be in the manifest. A clone of it is as one of
    /// [`client`](Self::client).
    pub fn api<K: Resource>(&self) -> Api<K> {
        self.nearby_by(self.client())
    }

    /// Reads an object near this one from the API server.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), and whatever the API server says.
    pub fn get<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, K>
    where
        C: CanGet<K>,
    {
        // A future without `C` in its type: what is not granted is said once, at the call.
        Box::pin(async move { self.nearby::<K>().get(name).await })
    }

    /// Reads an object near this one from the API server; `None` when it does not exist.
    ///
    /// # Errors
    /// Whatever the API server says.
    pub fn get_opt<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, Option<K>>
    where
        C: CanGet<K>,
    {
        Box::pin(async move { self.nearby::<K>().get_opt(name).await })
    }

    /// Reads the objects near this one that `labels` matches from the API server.
    ///
    /// # Errors
    /// Whatever the API server says.
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

    /// Creates an object near this one, without making it a child
    /// ([`create_owned`](Self::create_owned) does that).
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists), and whatever the API server
    /// says.
    pub fn create<'a, K: Whole>(&'a self, object: &'a K) -> ApiFuture<'a, K>
    where
        C: CanCreate<K>,
    {
        Box::pin(async move { self.send_create(&self.nearby(), object).await })
    }

    /// Replaces an object near this one by `object`, which has to carry the resourceVersion it was
    /// made of. Its status is not written where that is a subresource.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`](crate::ErrorKind::Conflict) when somebody wrote since, and whatever
    /// the API server says.
    pub fn replace<'a, K: Whole>(&'a self, object: &'a K) -> ApiFuture<'a, K>
    where
        C: CanUpdate<K>,
    {
        Box::pin(async move {
            let (replaced, answer) = self.answered(self.nearby::<K>().replace(object)).await?;
            // Accepted on top of the version that it carried alone.
            match object.resource_version() {
                from if self.is_own(object) && !from.is_empty() => {
                    self.wrote_upon(from, &replaced, &answer)
                }
                _ => self.wrote(What::Changed, &replaced, &answer),
            }
            Ok(replaced)
        })
    }

    /// Sends a creation and shows its answer to the cache. Whether a child exists whose name is not
    /// known is asked by whoever counts children, so its fate is noted whatever happens here.
    pub(super) async fn send_create<K: Whole>(&self, api: &Api<K>, child: &K) -> Result<K, Error> {
        let clock = &self.reach.seams.clock;
        let is_unnamed = child.name().is_empty() && is_controlled_by(child, self.object.uid());
        let kind = Kind::of::<K>().filter(|_| is_unnamed);
        let ledger = &self.reach.memory.applied.ledger;
        let flight = kind.map(|kind| ledger.creating(self.whose(), kind, clock.now()));
        match (self.answered(api.create(child)).await, flight) {
            (Ok((created, answer)), Some(flight)) => {
                self.show::<K>(&answer);
                let key = created.key().in_cluster(self.key.cluster());
                flight.landed(&key, created.uid(), clock.now());
                Ok(created)
            }
            (Ok((created, answer)), None) => {
                self.wrote(What::Created, &created, &answer);
                Ok(created)
            }
            (Err(error), flight) => {
                if let Some(flight) = flight.filter(|_| is_refusal(&error)) {
                    flight.refused();
                }
                Err(error)
            }
        }
    }

    /// Patches an object near this one. A patch of the reconciled object wakes it once more: what the
    /// patch was made upon is not known. [`patcher`](Self::patcher) does not.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), and whatever the API server says.
    pub fn patch<'a, K: Resource>(&'a self, name: &'a str, patch: Patch) -> ApiFuture<'a, K>
    where
        C: CanPatch<K>,
    {
        Box::pin(async move {
            let (patched, answer) = self.answered(self.nearby::<K>().patch(name, patch)).await?;
            self.wrote(What::Changed, &patched, &answer);
            Ok(patched)
        })
    }

    /// Deletes an object near this one; it is no error when there is none.
    ///
    /// # Errors
    /// Whatever the API server says.
    pub fn delete<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, ()>
    where
        C: CanDelete<K>,
    {
        Box::pin(async move {
            let key = self.near_key::<K>(name);
            self.send_delete::<K>(&key, self.nearby::<K>().delete(name)).await
        })
    }

    /// Sends a deletion and shows it to the cache; it is no error when the object is gone.
    pub(super) async fn send_delete<K: Resource>(
        &self,
        key: &ObjectKey,
        delete: Delete<K>,
    ) -> Result<(), Error> {
        // What is cached before the request is sent is gone by the time of a 404.
        let known = self.cached_uid::<K>(key);
        match delete.answer().await {
            Ok(answer) => {
                self.deleted::<K>(key, &answer);
                Ok(())
            }
            Err(error) if error.code() == Some(404) => {
                if let Some(uid) = known {
                    self.gone::<K>(key, &uid);
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Is it the reconciled object, in whatever form?
    pub(super) fn is_own<K: Resource>(&self, object: &K) -> bool {
        let kind = K::static_info().map(|info| info.group_resource());
        kind.is_some_and(|kind| kind == self.reach.info.group_resource())
            && object.name() == self.key.name()
            && object.namespace().is_none_or(|namespace| Some(namespace) == self.key.namespace())
    }

    /// The key of kind `K` and this name where [`api`](Self::api) looks.
    pub(super) fn near_key<K: Resource>(&self, name: &str) -> ObjectKey {
        let namespace = self.key.namespace().filter(|_| is_namespaced::<K>());
        ObjectKey::new(namespace, name).in_cluster(self.key.cluster())
    }

    /// The cache of a kind of children.
    pub fn store_of<K: Resource>(&self) -> Store<K>
    where
        C: OwnsCache<K>,
    {
        self.reach.informers.pinned::<K>().store()
    }

    /// The cache of a kind that the controller watches, by `watches(…)` or by
    /// `can(get list watch …)`, in all namespaces that it works in. It is filled before the first
    /// reconcile. Without `watches(…)` changes of these objects wake nothing.
    pub fn watched<K: Resource>(&self) -> Store<K>
    where
        C: CanList<K> + CanWatch<K>,
    {
        self.reach.informers.pinned::<K>().store()
    }
}

/// Is it certain that nothing was created? Of what may have been executed the client says that it is
/// ambiguous; an answer that does not decode is an answer.
fn is_refusal(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Ambiguous | ErrorKind::Decode)
}
