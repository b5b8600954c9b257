//! Children of an object: applied as a whole, owned, and not written when nothing would change.
//!
//! An owner reference proves nothing: every user who may create an object can write such a
//! reference. So all consequences of an owner reference are limited to the object that carries the
//! reference.
//!
//! Reads of a child go to the cache first. The cache may be older than the API server, so every
//! write that follows carries the uid and the version of the child that was checked, and a cache
//! without the child is followed by a read.

use super::apply::{ApplyOwned, TRIES};
use super::{is_controlled_by, is_namespaced};
use crate::controller::{Context, Reconciler};
use crate::owner::{OWNER, OWNER_UID, OwnerMark, child_namespace, marked_index};
use windlass_cache::store::Cached;
use windlass_client::api::{Api, ApiFuture, Propagation};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::{Owns, OwnsObject};
use windlass_core::resource::{ApplyObject, FullObject, ObjectKey, Resource, ResourceExt};

impl<C: Reconciler> Context<C> {
    /// Makes a child exist and match `child`, an object of the kind or an apply configuration, by
    /// server-side apply: fields that `child` names are owned (taken over if need be), fields that
    /// the child leaves out are left to others, and fields that only the last apply named are
    /// removed. The child gets the object as controller owner, and the object's namespace. The
    /// child's status is not written.
    ///
    /// The child is created, or is already a child of this very object (by uid): another object of
    /// that name is left alone and reported by an Event `ChildTaken`, unless the object may be
    /// [adopted](ApplyOwned::adopt). For a child that an earlier object of the same name left, the
    /// apply fails until garbage collection has deleted it.
    ///
    /// Costs no request when the apply would change nothing: also after a restart, and when others
    /// have changed fields that `child` does not name. Fields that others changed since this
    /// process applied them are set back, and named in the log, on the debug page and in an Event
    /// `DriftCorrected`.
    ///
    /// Leave out fields that another controller decides on, as an autoscaler on `spec.replicas`:
    /// every field that a child names is reset whenever others change it.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use std::collections::BTreeMap;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::controller::{Action, Context, Reconciler, Result};
    /// # use windlass::prelude::*;
    /// # struct Sites;
    /// # impl windlass::rbac::Owns<ConfigMap> for Sites {}
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
    ///     let mut page = ConfigMap::default();
    ///     page.metadata.name = Some(format!("{}-page", site.name()));
    ///     page.data = Some(BTreeMap::from([("index.html".into(), "<h1>Welcome</h1>".into())]));
    ///     cx.apply_owned(page).await?;
    ///     Ok(Action::done())
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the child has no name, or lies in a place where the object cannot
    /// own it; [`ErrorKind::Conflict`] when an object of that name exists that is no child of this
    /// one; [`ErrorKind::NotFound`] when the object itself turns out to be gone: such a reconcile
    /// ends without being counted as a failure; any error of the API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the request may have been executed, and is harmless
    /// when repeated.
    pub fn apply_owned<A: ApplyObject<K>, K: FullObject>(&self, child: A) -> ApplyOwned<'_, C, K>
    where
        C: OwnsObject<A, K>,
    {
        self.apply_child(child)
    }

    /// As [`apply_owned`](Self::apply_owned), for a graph: `add_to` has added the permissions.
    pub(crate) fn apply_child<K: FullObject>(
        &self,
        child: impl ApplyObject<K>,
    ) -> ApplyOwned<'_, C, K> {
        let child = serde_json::to_value(&child).map_err(|error| {
            let kind = K::static_info().map_or("child".into(), |info| info.kind);
            Error::usage(format!("cannot turn a {kind} into JSON to apply it")).because(error)
        });
        ApplyOwned::new(self, child)
    }

    /// Creates a child, with a name of its own or a name that the API server makes from
    /// `generateName`. The child gets the object as controller owner, and the object's namespace.
    /// For a child of a fixed name [`apply_owned`](Self::apply_owned) is better: that method may be
    /// called repeatedly.
    ///
    /// The next reconcile of the object finds the child in the cache. When the outcome for a child
    /// of a generated name is unknown, because no answer came or the reconcile was dropped,
    /// [`expectations`](Self::expectations) include the child.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the child lies in a place where the object cannot own it;
    /// [`ErrorKind::AlreadyExists`]; [`ErrorKind::Ambiguous`] when the child may have been created;
    /// any error of the API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the child may have been created, and is expected if
    /// the name is generated.
    pub fn create_owned<K: FullObject>(&self, child: K) -> ApiFuture<'_, K>
    where
        C: Owns<K>,
    {
        Box::pin(self.create_child(child))
    }

    /// Completes the child with namespace and owner, and sends the create.
    async fn create_child<K: FullObject>(&self, mut child: K) -> Result<K, Error> {
        let Some(info) = K::static_info() else {
            return Err(Error::usage("cannot create a child whose type does not say its kind"));
        };
        let named = child.metadata().name.as_deref().or(child.metadata().generate_name.as_deref());
        let name = named.unwrap_or_default().to_owned();
        let namespace = child_namespace(&self.object_ref(), &info, &name, child.namespace())?;
        let owner = self.object.controller_reference(&self.shared.info).ok_or_else(|| {
            Error::usage(format!("{} has no uid yet, and cannot own a child", self.object_ref()))
        })?;
        let metadata = child.metadata_mut();
        let owners = metadata.owner_references.get_or_insert_default();
        // Replaces a reference to the same owner that the child already has.
        owners.retain(|other| other.uid != owner.uid);
        owners.push(owner);
        metadata.namespace = namespace;
        self.before_creating(&format!("{} \"{name}\"", info.kind)).await?;
        let api = self.api_of::<K>(&child.key());
        self.send_create(&api, &child).await
    }

    /// Deletes the child of that name in the object's namespace, and all that the child owns; a
    /// missing child is no error. An object of that name that the object does not control is left
    /// alone, also when the object stopped being a child a moment ago.
    ///
    /// For a cluster-scoped object children are looked up in all namespaces;
    /// [`delete_owned_in`](Self::delete_owned_in) is better there. An owner reference is a claim
    /// that every creator of an object can make, so a foreign namespace may contain an object that
    /// claims to be a child of this name. Among several such objects, the deleted one is the object
    /// that this process applied, or the only object that this controller applied by its
    /// `managedFields`. After a restart, a client that applies under this controller's name can
    /// therefore keep the child from being determined, until the child is applied again; such
    /// an object has no effect on [`delete_owned_in`](Self::delete_owned_in).
    ///
    /// The deletion is in the background: the request returns when the child is marked, and garbage
    /// collection deletes what the child owns.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when children of that name are in several namespaces and the meant one
    /// cannot be determined; [`ErrorKind::Conflict`] when others keep writing to the child; any
    /// error of the API server.
    /// # Cancel safety
    /// Dropping the future cancels the request; the child may be gone. A repetition is harmless.
    pub fn delete_owned<'a, K: Resource>(&'a self, name: &'a str) -> ApiFuture<'a, ()>
    where
        C: Owns<K>,
    {
        Box::pin(async move {
            let key = if self.key.namespace().is_none() && is_namespaced::<K>() {
                match self.find_anywhere::<K>(name).await? {
                    Some(key) => key,
                    None => return Ok(()),
                }
            } else {
                self.near_key::<K>(name)
            };
            self.delete_child::<K>(&key, Propagation::Background).await
        })
    }

    /// Deletes a child in that namespace, as [`delete_owned`](Self::delete_owned); for the children
    /// of cluster-scoped objects.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when `K` is cluster-scoped, or the object lies in another namespace;
    /// otherwise as [`delete_owned`](Self::delete_owned).
    /// # Cancel safety
    /// As [`delete_owned`](Self::delete_owned).
    pub fn delete_owned_in<'a, K: Resource>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> ApiFuture<'a, ()>
    where
        C: Owns<K>,
    {
        Box::pin(async move {
            if !is_namespaced::<K>() || self.key.namespace().is_some_and(|own| own != namespace) {
                let text = format!(
                    "cannot delete a child \"{name}\" of {} in namespace \"{namespace}\": it can have \
                     none there; call `delete_owned`",
                    self.object_ref()
                );
                return Err(Error::new(ErrorKind::Usage, text));
            }
            let key = ObjectKey::new(Some(namespace), name).in_cluster(self.key.cluster());
            self.delete_child::<K>(&key, Propagation::Background).await
        })
    }

    /// Deletes the object under that key, in exactly the version that was checked, if the object is
    /// a child.
    pub(super) async fn delete_child<K: Resource>(
        &self,
        key: &ObjectKey,
        propagation: Propagation,
    ) -> Result<(), Error> {
        let api = self.api_of::<K>(key);
        let mut found = match self.cached::<K>(key) {
            Some(child) if !self.holds(&child) => None,
            Some(child) => {
                let metadata = child.metadata();
                Some((metadata.uid().to_owned(), metadata.resource_version().to_owned()))
            }
            // The cache may lag behind the API server.
            None => self.live_child(&api, key.name()).await?,
        };
        if let Some(info) = K::static_info().filter(|_| found.is_some()) {
            self.shared.memory.applied.forget_child(&self.key, &(info, key.clone()));
        }
        let mut tries = 0;
        while let Some((uid, version)) = found {
            let delete = api.delete(key.name()).propagation(propagation);
            let delete = delete.uid(&uid).resource_version(&version);
            tries += 1;
            match self.send_delete::<K>(key, delete).await {
                // Another client wrote since: the object is checked again before the next try.
                Err(error) if error.code() == Some(409) && tries < TRIES => {
                    found = self.live_child(&api, key.name()).await?;
                }
                answer => return answer,
            }
        }
        Ok(())
    }

    /// Returns uid and version of the child of that name by the API server; `None` if the object is
    /// no child.
    async fn live_child<K: Resource>(
        &self,
        api: &Api<K>,
        name: &str,
    ) -> Result<Option<(String, String)>, Error> {
        let child = api.get(name).opt().await?;
        let child = child.filter(|child| self.holds_live(child));
        Ok(child.map(|child| (child.uid().to_owned(), child.resource_version().to_owned())))
    }

    /// Returns the key of the only child of that name in all namespaces.
    async fn find_anywhere<K: Resource>(&self, name: &str) -> Result<Option<ObjectKey>, Error> {
        let ours = self.shared.informers.pinned::<K>().store().owned_by(self.object.uid());
        let ours = ours.iter().filter(|child| child.key().name() == name && self.controls(child));
        let mut found: Vec<ObjectKey> = ours.clone().map(|child| child.key().clone()).collect();
        // Several objects claim to be this child: only an applied object is certain to be the
        // child.
        if found.len() > 1 && K::static_info().is_some() {
            let applied = ours.filter(|child| self.has_applied::<K>(child));
            found = applied.map(|child| child.key().clone()).collect();
        }
        if let [one] = found.as_slice() {
            return Ok(Some(one.clone()));
        }
        // The cache may lag behind, and does not keep `managedFields`: the API server is read.
        let named = format!("metadata.name={name}");
        let children = self.shared.client.all::<K>().list().fields(&named).await?.items;
        let mut claims = children;
        claims.retain(|child| child.name() == name && is_controlled_by(child, self.object.uid()));
        if claims.len() > 1 {
            let is_by_us = |child: &K| self.is_applied_by_us(child);
            if claims.iter().filter(|child| is_by_us(child)).count() == 1 {
                claims.retain(is_by_us);
            }
        }
        if let [one, other, ..] = claims.as_slice() {
            let text = format!(
                "cannot tell which child \"{name}\" of {} to delete: there are \"{}\" and \"{}\"; \
                 name the namespace, by `delete_owned_in`",
                self.object_ref(),
                one.key(),
                other.key()
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        Ok(claims.pop().map(|child| child.key().in_cluster(self.key.cluster())))
    }

    /// Whether this process applied exactly this child.
    fn has_applied<K: Resource>(&self, child: &Cached<K>) -> bool {
        let Some(info) = K::static_info() else { return false };
        let uid = self.shared.memory.applied.uid_of(&self.key, &(info, child.key().clone()));
        uid.as_deref() == Some(child.metadata().uid())
    }

    /// Whether `managedFields` show an apply by this controller.
    fn is_applied_by_us<K: Resource>(&self, child: &K) -> bool {
        let mut entries = child.metadata().managed_fields.iter().flatten();
        entries.any(|entry| {
            entry.manager.as_deref() == Some(&*self.shared.controller)
                && entry.operation.as_deref() == Some("Apply")
        })
    }

    /// Whether the reconciled object is the child's controller owner.
    pub(super) fn controls<K: Resource>(&self, child: &Cached<K>) -> bool {
        let mut owners = child.metadata().owners();
        owners.any(|owner| owner.controller && owner.uid == self.object.uid())
    }

    /// Whether the cached object is a child: by an owner reference, or by the mark of this very
    /// object. A mark means nothing on an object that an owner reference controls: an object has a
    /// single owner.
    pub(super) fn holds<K: Resource>(&self, child: &Cached<K>) -> bool {
        let metadata = child.metadata();
        match metadata.owners().find(|owner| owner.controller) {
            Some(controller) => controller.uid == self.object.uid(),
            None => match metadata.label(OWNER_UID) {
                None => false,
                label => self.mark().is_on_cached(label, || child.annotation(OWNER)),
            },
        }
    }

    /// As [`holds`](Self::holds), for an object that was read from the API server.
    pub(super) fn holds_live<K: Resource>(&self, child: &K) -> bool {
        let mut owners = child.metadata().owner_references.iter().flatten();
        match owners.find(|owner| owner.controller == Some(true)) {
            Some(controller) => controller.uid == self.object.uid(),
            None => self.mark().is_on(child.metadata()),
        }
    }

    /// The mark of the object on children without owner references.
    pub(super) fn mark(&self) -> OwnerMark {
        OwnerMark::of(&self.shared.info, &self.key, self.object.uid())
    }

    /// Returns the cached object of kind `K` at `key`.
    pub(super) fn cached<K: Resource>(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.shared.informers.pinned::<K>().store().get(key)
    }

    /// Returns the API of kind `K` in the namespace of `key`.
    pub(super) fn api_of<K: Resource>(&self, key: &ObjectKey) -> Api<K> {
        match key.namespace() {
            Some(namespace) => self.shared.client.namespace(namespace),
            None => self.shared.client.all(),
        }
    }

    /// Returns the cached children of kind `K` that the object controls, in the order of their
    /// keys.
    pub(crate) fn cached_children<K: Resource>(&self) -> Vec<Cached<K>> {
        self.cached_children_but(&|_| false)
    }

    /// Returns the cached children of kind `K` that the object controls, in the order of their
    /// keys, but for those that `is_left_out` names.
    pub(crate) fn cached_children_but<K: Resource>(
        &self,
        is_left_out: &dyn Fn(&ObjectKey) -> bool,
    ) -> Vec<Cached<K>> {
        let store = self.shared.informers.pinned::<K>().store();
        let mut children = store.owned_by(self.object.uid());
        children.retain(|child| !is_left_out(child.key()) && self.controls(child));
        children
    }

    /// Returns the cached children of kind `K` that carry the mark of the object, in the order of
    /// their keys.
    pub(crate) fn cached_marked_children<K: Resource>(&self) -> Vec<Cached<K>> {
        let store = self.shared.informers.pinned::<K>().store();
        let mut children = store.by_index(marked_index::<K>(), self.object.uid());
        children.retain(|child| !self.controls(child) && self.holds(child));
        children
    }

    /// Whether the cache of kind `K` has found that the API server does not serve the kind.
    pub(crate) fn is_unserved<K: Resource>(&self) -> bool {
        self.shared.informers.pinned::<K>().status().is_absent
    }

    /// Deletes the object at that key, if the object is a child.
    ///
    /// # Errors
    /// As [`delete_owned`](Self::delete_owned).
    pub(crate) async fn delete_child_by<K: Resource>(
        &self,
        key: &ObjectKey,
        propagation: Propagation,
    ) -> Result<(), Error> {
        self.delete_child::<K>(key, propagation).await
    }
}
