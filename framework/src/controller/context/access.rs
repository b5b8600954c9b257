//! Reading and writing other objects, as far as the controller was granted it.

use super::is_namespaced;
use crate::api::{Api, Delete, Patch};
use crate::controller::{Context, Reconciler};
use crate::error::Error;
use crate::rbac::{Can, Owns, verbs};
use crate::resource::{ObjectKey, Resource, Selector, Whole};
use crate::store::Store;

impl<C: Reconciler> Context<C> {
    /// Kind `K` in the object's namespace (in all, when the object or `K` has none), for what the
    /// checked methods do not cover. An escape hatch: no grant is checked at compile time, so what
    /// you use it for has to stand in `can(…)` to be in the manifest.
    pub fn api<K: Resource>(&self) -> Api<K> {
        self.nearby()
    }

    /// Reads an object near this one from the API server.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), and whatever the API server says.
    pub async fn get<K: Resource>(&self, name: &str) -> Result<K, Error>
    where
        C: Can<verbs::Get, K>,
    {
        self.nearby::<K>().get(name).await
    }

    /// Reads an object near this one from the API server; `None` when it does not exist.
    ///
    /// # Errors
    /// Whatever the API server says.
    pub async fn get_opt<K: Resource>(&self, name: &str) -> Result<Option<K>, Error>
    where
        C: Can<verbs::Get, K>,
    {
        self.nearby::<K>().get_opt(name).await
    }

    /// Reads the objects near this one that `labels` matches from the API server.
    ///
    /// # Errors
    /// Whatever the API server says.
    pub async fn list<K: Resource>(&self, labels: &Selector) -> Result<Vec<K>, Error>
    where
        C: Can<verbs::List, K>,
    {
        let mut list = self.nearby::<K>().list();
        if !labels.is_empty() {
            list = list.labels(&labels.to_string());
        }
        Ok(list.await?.items)
    }

    /// Creates an object near this one, without owning it.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`](crate::ErrorKind::AlreadyExists), and whatever the API server
    /// says.
    pub async fn create<K: Whole>(&self, object: &K) -> Result<K, Error>
    where
        C: Can<verbs::Create, K>,
    {
        let created = self.nearby::<K>().create(object).await?;
        self.wrote(&created);
        Ok(created)
    }

    /// Patches an object near this one.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound), and whatever the API server says.
    pub async fn patch<K: Resource>(&self, name: &str, patch: Patch) -> Result<K, Error>
    where
        C: Can<verbs::Patch, K>,
    {
        let patched = self.nearby::<K>().patch(name, patch).await?;
        self.wrote(&patched);
        Ok(patched)
    }

    /// Deletes an object near this one; it is no error when there is none.
    ///
    /// # Errors
    /// Whatever the API server says.
    pub async fn delete<K: Resource>(&self, name: &str) -> Result<(), Error>
    where
        C: Can<verbs::Delete, K>,
    {
        let key = self.near_key::<K>(name);
        self.send_delete::<K>(&key, self.nearby::<K>().delete(name)).await
    }

    /// Sends a deletion and shows it to the cache; it is no error when the object is gone.
    pub(super) async fn send_delete<K: Resource>(
        &self,
        key: &ObjectKey,
        delete: Delete<K>,
    ) -> Result<(), Error> {
        match delete.answer().await {
            Ok(answer) => {
                self.deleted::<K>(key, &answer);
                Ok(())
            }
            Err(error) if error.code() == Some(404) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The key of kind `K` and this name where [`api`](Self::api) looks.
    pub(super) fn near_key<K: Resource>(&self, name: &str) -> ObjectKey {
        let namespace = self.key.namespace().filter(|_| is_namespaced::<K>());
        ObjectKey::new(namespace, name).in_cluster(self.key.cluster())
    }

    /// The cache of a kind of children.
    pub fn store_of<K: Resource>(&self) -> Store<K>
    where
        C: Owns<K>,
    {
        self.reach.informers.pinned::<K>().store()
    }

    /// The cache of a kind that the controller watches.
    pub fn watched<K: Resource>(&self) -> Store<K>
    where
        C: Can<verbs::Watch, K>,
    {
        self.reach.informers.pinned::<K>().store()
    }
}
