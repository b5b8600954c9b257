//! Children: applied as a whole, owned, and left alone when nothing would change.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};

use super::is_namespaced;
use crate::api::{Api, Propagation};
use crate::controller::applied::fingerprint;
use crate::controller::expectations::What;
use crate::controller::{Context, Reconciler};
use crate::error::{Error, ErrorKind};
use crate::owner::child_namespace;
use crate::rbac::Owns;
use crate::resource::{ObjectKey, Resource, ResourceExt, ResourceInfo, Whole};
use crate::store::Cached;

/// What the API server fills in, or refuses to be told by an apply.
const SERVER_FIELDS: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "selfLink",
];

impl<C: Reconciler> Context<C> {
    /// Makes a child exist and look as `child` says, by server-side apply: fields it names are owned
    /// (taken over if need be), fields it leaves out are left to others, and fields it named last
    /// time and leaves out now are removed. It gets the object as controller owner, and the object's
    /// namespace. Its status is not written.
    ///
    /// Costs no request when the same intent was applied before and the child has not changed since.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the child has no name, or lies where the object cannot own it;
    /// [`ErrorKind::Conflict`] when it belongs to another controller; whatever the API server says.
    pub async fn apply_owned<K: Whole>(&self, child: K) -> Result<K, Error>
    where
        C: Owns<K>,
    {
        let (child_ref, intent) = self.intent(child)?;
        let (info, key) = &child_ref;
        let cached = self.store_of::<K>().get(key);
        let hash = fingerprint(&intent);
        let applied = &self.reach.memory.applied;
        if let Some(cached) = &cached {
            self.refuse_foreign(info, cached)?;
            let version = (cached.head().uid(), cached.head().resource_version());
            if applied.stands(&self.key, &child_ref, hash, version)
                && let Ok(child) = cached.get()
            {
                return Ok(Arc::unwrap_or_clone(child));
            }
        }
        let api = self.api_of::<K>(key);
        let write = api.apply(key.name(), &intent).manager(&self.reach.controller).force();
        let (child, answer) = self.answered(write).await?;
        applied.note(&self.key, &child_ref, hash, (child.uid(), child.resource_version()));
        let what = if cached.is_none() { What::Created } else { What::Changed };
        self.wrote(what, &child, &answer);
        Ok(child)
    }

    /// Creates a child, with a name of its own or one that the API server makes of `generateName`. It
    /// gets the object as controller owner, and the object's namespace. For a child of a fixed name
    /// [`apply_owned`](Self::apply_owned) is better: it may be called again and again.
    ///
    /// The next reconcile of the object finds the child in the cache. When it is not known whether a
    /// child of a generated name was created, because no answer came or the reconcile was dropped,
    /// [`expectations`](Self::expectations) wait for it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the child lies where the object cannot own it;
    /// [`ErrorKind::AlreadyExists`]; [`ErrorKind::Ambiguous`] when it may have been created; whatever
    /// the API server says.
    /// # Cancel safety
    /// Dropping it cancels the request; it may have been executed, and is expected if its name is
    /// generated.
    pub async fn create_owned<K: Whole>(&self, mut child: K) -> Result<K, Error>
    where
        C: Owns<K>,
    {
        let usage = |text: String| Error::new(ErrorKind::Usage, text);
        let Some(info) = K::static_info() else {
            return Err(usage("cannot create a child whose type does not say its kind".to_owned()));
        };
        let named = child.metadata().name.as_deref().or(child.metadata().generate_name.as_deref());
        let name = named.unwrap_or_default().to_owned();
        let namespace = child_namespace(&self.object_ref(), &info, &name, child.namespace())?;
        let owner = self.object.controller_reference(&self.reach.info).ok_or_else(|| {
            usage(format!("{} has no uid yet, and cannot own a child", self.object_ref()))
        })?;
        let metadata = child.metadata_mut();
        let owners = metadata.owner_references.get_or_insert_default();
        owners.retain(|other| other.uid != owner.uid);
        owners.push(owner);
        metadata.namespace = namespace;
        let api = self.api_of::<K>(&child.key());
        self.send_create(&api, &child).await
    }

    /// Deletes a child of that name near the object, and what it owns; it is no error when there is
    /// none. An object of that name that the object does not control is left alone. The children of
    /// a cluster-scoped object are looked for in all namespaces.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when children of that name are in several namespaces;
    /// [`ErrorKind::Conflict`] when another object took its place meanwhile; whatever the API server
    /// says.
    pub async fn delete_owned<K: Resource>(&self, name: &str) -> Result<(), Error>
    where
        C: Owns<K>,
    {
        let found = if self.key.namespace().is_none() && is_namespaced::<K>() {
            self.find_anywhere::<K>(name).await?
        } else {
            self.find_near::<K>(name).await?
        };
        let Some((key, uid)) = found else { return Ok(()) };
        if let Some(info) = K::static_info() {
            self.reach.memory.applied.forget_child(&self.key, &(info, key.clone()));
        }
        let delete =
            self.api_of::<K>(&key).delete(name).propagation(Propagation::Background).uid(&uid);
        self.send_delete::<K>(&key, delete).await
    }

    /// Key and uid of the child of that name, if it is ours.
    async fn find_near<K: Resource>(&self, name: &str) -> Result<Option<(ObjectKey, String)>, Error>
    where
        C: Owns<K>,
    {
        let key = self.near_key::<K>(name);
        let uid = match self.store_of::<K>().get(&key) {
            Some(child) => self.controls(&child).then(|| child.head().uid().to_owned()),
            // The cache may lag behind: ask the API server.
            None => {
                let child = self.nearby::<K>().get_opt(name).await?;
                let child = child.filter(|child| is_controlled_by(child, self.object.uid()));
                child.map(|child| child.uid().to_owned())
            }
        };
        Ok(uid.map(|uid| (key, uid)))
    }

    /// Key and uid of the one child of that name in any namespace.
    async fn find_anywhere<K: Resource>(
        &self,
        name: &str,
    ) -> Result<Option<(ObjectKey, String)>, Error>
    where
        C: Owns<K>,
    {
        let ours = self.store_of::<K>().owned_by(self.object.uid()).into_iter();
        let ours = ours.filter(|child| child.key().name() == name && self.controls(child));
        let mut found: Vec<_> =
            ours.map(|child| (child.key().clone(), child.head().uid().to_owned())).collect();
        if found.is_empty() {
            // The cache may lag behind: ask the API server.
            let named = format!("metadata.name={name}");
            let children = self.reach.client.all::<K>().list().fields(&named).await?.items;
            let ours = children
                .into_iter()
                .filter(|child| child.name() == name && is_controlled_by(child, self.object.uid()));
            found = ours
                .map(|child| (child.key().in_cluster(self.key.cluster()), child.uid().to_owned()))
                .collect();
        }
        if let [(one, _), (other, _), ..] = found.as_slice() {
            let text = format!(
                "cannot tell which child \"{name}\" of {} to delete: there are \"{one}\" and \
                 \"{other}\"; delete it through `cx.client().namespace(…)`",
                self.object_ref()
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        Ok(found.pop())
    }

    fn controls<K: Resource>(&self, child: &Cached<K>) -> bool {
        let mut owners = child.head().owners();
        owners.any(|owner| owner.controller && owner.uid == self.object.uid())
    }

    /// Kind `K` where `key` is.
    fn api_of<K: Resource>(&self, key: &ObjectKey) -> Api<K> {
        match key.namespace() {
            Some(namespace) => self.reach.client.namespace(namespace),
            None => self.reach.client.all(),
        }
    }

    /// What is applied for `child`, and where.
    fn intent<K: Resource>(&self, child: K) -> Result<((ResourceInfo, ObjectKey), Value), Error> {
        let usage = |text: String| Error::new(ErrorKind::Usage, text);
        let info = K::static_info().ok_or_else(|| {
            usage("cannot apply a child whose type does not say its kind".to_owned())
        })?;
        let name = child.name().to_owned();
        if name.is_empty() {
            let kind = &info.kind;
            return Err(usage(format!(
                "cannot apply a child {kind} of {} without a name; \
                 set `metadata.name`, derived from the object's so that it is always the same",
                self.object_ref()
            )));
        }
        let namespace = child_namespace(&self.object_ref(), &info, &name, child.namespace())?;
        let key = ObjectKey::new(namespace.as_deref(), &name).in_cluster(self.key.cluster());
        let owner = self.object.controller_reference(&self.reach.info).ok_or_else(|| {
            usage(format!("{} has no uid yet, and cannot own a child", self.object_ref()))
        })?;
        let mut intent = serde_json::to_value(&child).map_err(|error| {
            usage(format!("cannot turn {} \"{name}\" into JSON", info.kind)).because(error)
        })?;
        complete(&mut intent, &info, namespace, &owner);
        Ok(((info, key), intent))
    }

    fn refuse_foreign<K: Resource>(
        &self,
        info: &ResourceInfo,
        child: &Cached<K>,
    ) -> Result<(), Error> {
        let ours = self.object.uid();
        match child.head().owners().find(|owner| owner.controller && owner.uid != ours) {
            None => Ok(()),
            Some(owner) => Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "cannot own {} \"{}\": it is controlled by {} \"{}\" already; \
                     choose another name for the child of {}",
                    info.kind,
                    child.key(),
                    owner.kind,
                    owner.name,
                    self.object_ref()
                ),
            )),
        }
    }
}

pub(super) fn is_controlled_by<K: Resource>(child: &K, uid: &str) -> bool {
    let owners = child.metadata().owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

/// Adds what the user need not write, drops what may not be applied.
fn complete(
    intent: &mut Value,
    info: &ResourceInfo,
    namespace: Option<String>,
    owner: &OwnerReference,
) {
    let Value::Object(object) = intent else { return };
    object.insert("apiVersion".into(), info.api_version().into());
    object.insert("kind".into(), info.kind.as_ref().into());
    object.remove("status");
    let metadata = object.entry("metadata").or_insert_with(|| Map::new().into());
    let Value::Object(metadata) = metadata else { return };
    for field in SERVER_FIELDS {
        metadata.remove(field);
    }
    if let Some(namespace) = namespace {
        metadata.insert("namespace".into(), namespace.into());
    }
    let owners = metadata.entry("ownerReferences").or_insert_with(|| Vec::<Value>::new().into());
    if let Value::Array(owners) = owners {
        owners.retain(|other| other.get("uid").and_then(Value::as_str) != Some(&owner.uid));
        owners.extend(serde_json::to_value(owner));
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_intent_names_owner_and_kind_and_nothing_that_the_server_fills_in() {
        let owner = OwnerReference {
            api_version: "example.dev/v1".into(),
            kind: "Website".into(),
            name: "home".into(),
            uid: "1".into(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let mut intent = json!({
            "metadata": { "name": "web", "resourceVersion": "7", "uid": "x", "managedFields": [] },
            "spec": { "replicas": 2 },
            "status": { "replicas": 1 },
        });
        let info = ResourceInfo::of::<Deployment>();
        complete(&mut intent, &info, Some("shop".into()), &owner);
        complete(&mut intent, &info, Some("shop".into()), &owner);
        let expected = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "ownerReferences": [{
                    "apiVersion": "example.dev/v1", "kind": "Website", "name": "home", "uid": "1",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": { "replicas": 2 },
        });
        assert_eq!(intent, expected);
    }
}
