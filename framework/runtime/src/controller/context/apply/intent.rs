//! The intent of an apply: the value that is sent for a child, with kind, namespace and owner.

// DESIGN.md, 192: Texts of a Secret are applied as its data

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};

use crate::controller::{Context, Reconciler};
use crate::owner::{OWNER, OWNER_UID, OwnerMark, child_namespace, marked_namespace};
use windlass_core::error::Error;
use windlass_core::resource::{ObjectKey, Resource, ResourceExt, ResourceInfo};

/// Metadata that the API server fills in, or refuses in an apply.
///
/// A child that was read and is applied again must not carry these fields: an apply with
/// `managedFields` is refused, and an apply with a `resourceVersion` would conflict.
const SERVER_FIELDS: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "selfLink",
];

/// A child, the value that is applied for it, and the proof of the child's owner.
pub(super) type Intent = ((ResourceInfo, ObjectKey), Value, Ownership);

/// The way in which a child names its owner.
#[derive(Clone, Debug)]
pub(super) enum Ownership {
    /// By an owner reference, which garbage collection follows.
    Reference(OwnerReference),
    /// By a mark, where no owner reference can be.
    Mark(OwnerMark),
}

impl<C: Reconciler> Context<C> {
    /// Returns the key and the complete value to apply for `child`, and the ownership: with
    /// `is_marked` by a mark, which reaches beyond owner references.
    pub(super) fn intent<K: Resource>(
        &self,
        mut intent: Value,
        is_marked: bool,
    ) -> Result<Intent, Error> {
        let info = K::static_info()
            .ok_or_else(|| Error::usage("cannot apply a child whose type does not say its kind"))?;
        let named = |member: &str| intent["metadata"][member].as_str();
        let name = named("name").unwrap_or_default().to_owned();
        if name.is_empty() {
            let kind = &info.kind;
            return Err(Error::usage(format!(
                "cannot apply a child {kind} of {} without a name; \
                 set `metadata.name`, derived from the object's so that it is always the same",
                self.object_ref()
            )));
        }
        let place = if is_marked { marked_namespace } else { child_namespace };
        let namespace = place(&self.object_ref(), &info, &name, named("namespace"))?;
        let key = ObjectKey::new(namespace.as_deref(), &name).in_cluster(self.key.cluster());
        let owner = self.object.controller_reference(&self.shared.info).ok_or_else(|| {
            Error::usage(format!("{} has no uid yet, and cannot own a child", self.object_ref()))
        })?;
        let owner = match is_marked {
            true => {
                self.ensure_seen::<K>(&info, &key)?;
                Ownership::Mark(self.mark())
            }
            false => Ownership::Reference(owner),
        };
        complete(&mut intent, &info, namespace, &owner);
        Ok(((info, key), intent, owner))
    }

    /// Refuses a marked child in a namespace that the cache does not cover: such a child would be
    /// neither watched nor found for its deletion.
    fn ensure_seen<K: Resource>(&self, info: &ResourceInfo, key: &ObjectKey) -> Result<(), Error> {
        if self.shared.informers.pinned::<K>().covers(key.namespace()) {
            return Ok(());
        }
        let text = format!(
            "cannot apply {} \"{key}\" as a child of {}: the operator watches other namespaces only; let it watch \
             this one",
            info.kind,
            self.object_ref()
        );
        Err(Error::usage(text))
    }
}

/// Adds kind, namespace and owner to an intent, and removes fields that may not be applied.
fn complete(intent: &mut Value, info: &ResourceInfo, namespace: Option<String>, owner: &Ownership) {
    let Value::Object(object) = intent else { return };
    object.insert("apiVersion".into(), info.api_version().into());
    object.insert("kind".into(), info.kind.as_ref().into());
    object.remove("status");
    if info.group.is_empty() && info.kind == "Secret" {
        encode_texts(object);
    }
    let metadata = object.entry("metadata").or_insert_with(|| Map::new().into());
    let Value::Object(metadata) = metadata else { return };
    for field in SERVER_FIELDS {
        metadata.remove(field);
    }
    if let Some(namespace) = namespace {
        metadata.insert("namespace".into(), namespace.into());
    }
    let owner = match owner {
        Ownership::Reference(owner) => owner,
        Ownership::Mark(mark) => {
            for (map, key, value) in
                [("labels", OWNER_UID, &mark.uid), ("annotations", OWNER, &mark.text)]
            {
                let map = metadata.entry(map).or_insert_with(|| Map::new().into());
                // Instead of null, as of a list that is there and empty.
                if !map.is_object() {
                    *map = Map::new().into();
                }
                map[key] = value.as_str().into();
            }
            return;
        }
    };
    let owners = metadata.entry("ownerReferences").or_insert_with(|| Vec::<Value>::new().into());
    if let Value::Array(owners) = owners {
        owners.retain(|other| other.get("uid").and_then(Value::as_str) != Some(&owner.uid));
        owners.extend(serde_json::to_value(owner));
    }
}

/// Moves `stringData` of a Secret into `data`, as the API server does. The API server stores no
/// `stringData`, so that neither a change of these values by others would show nor their removal
/// from the intent.
fn encode_texts(secret: &mut Map<String, Value>) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    for (key, text) in texts {
        let bytes = ByteString(text.as_str().unwrap_or_default().as_bytes().to_vec());
        let data = secret.entry("data").or_insert_with(|| Map::new().into());
        if !data.is_object() {
            *data = Map::new().into();
        }
        data[key] = serde_json::to_value(bytes).unwrap_or_default();
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
        let owner = Ownership::Reference(owner);
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

    #[test]
    fn texts_of_a_secret_are_applied_as_its_data() {
        let mut secret = json!({ "data": { "a": "MQ==" }, "stringData": { "a": "2", "b": "3" } });
        encode_texts(secret.as_object_mut().expect("an object"));
        assert_eq!(secret, json!({ "data": { "a": "Mg==", "b": "Mw==" } }));
        let mut secret = json!({ "stringData": {} });
        encode_texts(secret.as_object_mut().expect("an object"));
        assert_eq!(secret, json!({}));
    }
}
