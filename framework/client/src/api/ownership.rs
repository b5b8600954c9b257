//! Field ownership: the applied fields of a manager, and the way from updates to applies.
//!
//! `metadata.managedFields` holds for each manager the tree of fields that the manager set
//! (`FieldsV1`: `f:` for a field, `k:` for the item of a list by keys, `v:` for a member of a set).
//! Both functions read that tree and need no schema.
//!
//! Not included: sending; the results go to [`Api::apply`](super::Api::apply) and
//! [`Api::patch`](super::Api::patch).

// DESIGN.md, 119: Parts that look superfluous and stay

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value, json};

use super::Patch;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Resource, ResourceExt};

/// Returns the fields of `object` that `manager` has applied, as an intent that can be changed and
/// applied again; client-go calls this function `ExtractX`.
///
/// `subresource` is empty for the object itself, otherwise for example `status`. `None` when the
/// manager has applied nothing there; fields that the manager wrote by other means do not count.
///
/// A field that the manager owns and that is gone meanwhile is left out. The intent carries the
/// object's `apiVersion`, `kind`, name and namespace.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::api::owned_fields;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let maps = client.namespace::<ConfigMap>("shop");
/// let map = maps.get("settings").await?;
/// if let Some(mut intent) = owned_fields(&map, "shop-operator", "")? {
///     intent["data"]["color"] = "blue".into();
///     maps.apply("settings", &intent).manager("shop-operator").await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::Decode`] when the object cannot be serialized as JSON.
pub fn owned_fields<K: Resource>(
    object: &K,
    manager: &str,
    subresource: &str,
) -> Result<Option<Value>, Error> {
    let applied = entries(object).iter().find(|entry| {
        is(&entry.manager, manager) && is(&entry.operation, "Apply") && within(entry, subresource)
    });
    let Some(Value::Object(fields)) = applied.and_then(tree) else { return Ok(None) };
    let whole = serde_json::to_value(object).map_err(|error| {
        let text = format!(
            "cannot read the fields that {manager} owns: the object cannot be serialized as JSON"
        );
        Error::new(ErrorKind::Decode, text).because(error)
    })?;
    let mut owned = match pick(&whole, fields) {
        Value::Object(owned) => owned,
        _ => Map::new(),
    };
    for key in ["apiVersion", "kind"] {
        if let Some(value) = whole.get(key) {
            owned.insert(key.to_owned(), value.clone());
        }
    }
    if let Value::Object(metadata) = owned.entry("metadata").or_insert_with(|| json!({})) {
        for key in ["name", "namespace"] {
            if let Some(value) = whole["metadata"].get(key) {
                metadata.insert(key.to_owned(), value.clone());
            }
        }
    }
    Ok(Some(Value::Object(owned)))
}

/// Returns a patch that turns fields written by the managers `from` into applied fields of the
/// manager `to`, so that a later apply can remove them; client-go's `csaupgrade`.
///
/// The patch takes over the fields of creates, updates and patches. `None` when there is nothing to
/// change. The patch fails as a conflict when the object was written in between.
///
/// For an operator that changes from replacing to applying: without the upgrade a field that an
/// earlier version set by an update is never removed.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::api::upgrade_to_apply;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let maps = client.namespace::<ConfigMap>("shop");
/// let map = maps.get("settings").await?;
/// if let Some(patch) = upgrade_to_apply(&map, &["shop-operator"], "shop-operator", "") {
///     maps.patch("settings", patch).await?;
/// }
/// # Ok(())
/// # }
/// ```
pub fn upgrade_to_apply<K: Resource>(
    object: &K,
    from: &[&str],
    to: &str,
    subresource: &str,
) -> Option<Patch> {
    let mut entries = entries(object).to_vec();
    let old = |entry: &ManagedFieldsEntry| {
        entry.manager.as_deref().is_some_and(|manager| from.contains(&manager))
            && is(&entry.operation, "Update")
            && within(entry, subresource)
    };
    let first_old = entries.iter().position(old)?;
    let applied = entries.iter().position(|entry| {
        is(&entry.manager, to) && is(&entry.operation, "Apply") && within(entry, subresource)
    });
    // Without applied fields of `to`, the first entry of an old manager becomes the entry of `to`.
    let target = applied.unwrap_or_else(|| {
        entries[first_old].manager = Some(to.to_owned());
        entries[first_old].operation = Some("Apply".to_owned());
        first_old
    });
    let mut merged = entries[target].clone();
    // Trees of another API version may name other fields.
    let joins = |entry: &ManagedFieldsEntry| old(entry) && entry.api_version == merged.api_version;
    let mut fields = tree(&merged).cloned().unwrap_or_else(|| json!({}));
    for entry in entries.iter().filter(|entry| joins(entry)) {
        unite(&mut fields, tree(entry).unwrap_or(&Value::Null));
    }
    let joined: Vec<bool> = entries.iter().map(joins).collect();
    merged.fields_v1 = Some(FieldsV1(fields));
    entries[target] = merged;
    let mut index = 0..;
    // The target has the fields of the joined entries now.
    entries.retain(|_| index.next().is_some_and(|at| at == target || !joined[at]));
    // The version makes the patch fail if the ownership changed since `object` was read.
    Some(Patch::Json(json!([
        { "op": "replace", "path": "/metadata/managedFields", "value": entries },
        { "op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version() },
    ])))
}

/// The managed fields of an object.
fn entries<K: Resource>(object: &K) -> &[ManagedFieldsEntry] {
    object.metadata().managed_fields.as_deref().unwrap_or_default()
}

/// Whether an optional text is `text`.
fn is(field: &Option<String>, text: &str) -> bool {
    field.as_deref() == Some(text)
}

/// Whether an entry is about this subresource.
fn within(entry: &ManagedFieldsEntry, subresource: &str) -> bool {
    entry.subresource.as_deref().unwrap_or_default() == subresource
}

/// The tree of fields of an entry.
fn tree(entry: &ManagedFieldsEntry) -> Option<&Value> {
    entry.fields_v1.as_ref().map(|fields| &fields.0)
}

/// The parts of `value` that `fields` names.
fn pick(value: &Value, fields: &Map<String, Value>) -> Value {
    if fields.is_empty() {
        // A leaf: a scalar, or a map or list that is owned as a whole.
        return value.clone();
    }
    match value {
        Value::Object(object) => {
            let named = fields.iter().filter_map(|(key, below)| {
                // Other keys, such as `.`, are no fields.
                let name = key.strip_prefix("f:")?;
                Some((name.to_owned(), pick(object.get(name)?, below.as_object()?)))
            });
            Value::Object(named.collect())
        }
        Value::Array(items) => {
            Value::Array(items.iter().filter_map(|item| pick_item(item, fields)).collect())
        }
        scalar => scalar.clone(),
    }
}

/// An item of a list, if `fields` names the item; with the identifying keys.
fn pick_item(item: &Value, fields: &Map<String, Value>) -> Option<Value> {
    fields.iter().find_map(|(key, below)| {
        if let Some(member) = key.strip_prefix("v:") {
            let member: Value = serde_json::from_str(member).ok()?;
            return (member == *item).then(|| item.clone());
        }
        let keys: Map<String, Value> = serde_json::from_str(key.strip_prefix("k:")?).ok()?;
        if !keys.iter().all(|(name, value)| item.get(name) == Some(value)) {
            return None;
        }
        let mut picked = pick(item, below.as_object()?);
        // An apply identifies the item by the keys, owned or not.
        picked.as_object_mut()?.extend(keys);
        Some(picked)
    })
}

/// Adds the fields of `other` to `fields`.
fn unite(fields: &mut Value, other: &Value) {
    let (Value::Object(fields), Value::Object(other)) = (fields, other) else { return };
    for (key, below) in other {
        unite(fields.entry(key.clone()).or_insert_with(|| json!({})), below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_core::resource::DynamicObject;

    fn deployment() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "web", "namespace": "shop", "resourceVersion": "7",
                "labels": {"app": "web", "team": "b"}, "finalizers": ["a/x", "b/y"],
                "managedFields": [
                    {"manager": "ours", "operation": "Apply", "apiVersion": "apps/v1",
                     "fieldsType": "FieldsV1", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"b/y\"": {}}},
                        "f:spec": {"f:replicas": {}, "f:gone": {}, "f:template": {"f:spec": {
                            "f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}},
                            "f:strategy": {}}}},
                    {"manager": "old", "operation": "Update", "apiVersion": "apps/v1",
                     "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:paused": {}}}},
                    {"manager": "old", "operation": "Update", "apiVersion": "apps/v1",
                     "subresource": "status", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:status": {"f:replicas": {}}}},
                    {"manager": "old", "operation": "Update", "apiVersion": "apps/v1beta1",
                     "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:older": {}}}},
                ],
            },
            "spec": {
                "replicas": 3, "paused": true,
                "strategy": {"type": "Recreate"},
                "template": {"spec": {"containers": [
                    {"name": "sidecar", "image": "s"}, {"name": "web", "image": "w", "tty": true}]}},
            },
        }))
        .unwrap()
    }

    #[test]
    fn what_a_manager_applied_is_read_back_and_nothing_else() {
        let owned = owned_fields(&deployment(), "ours", "").unwrap().unwrap();
        assert_eq!(
            owned,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"},
                    "finalizers": ["b/y"]},
                "spec": {"replicas": 3, "strategy": {"type": "Recreate"},
                    "template": {"spec": {"containers": [{"name": "web", "image": "w"}]}}},
            })
        );
        for (manager, subresource) in [("old", ""), ("ours", "status"), ("nobody", "")] {
            assert!(owned_fields(&deployment(), manager, subresource).unwrap().is_none());
        }
    }

    #[test]
    fn hostile_field_trees_do_no_harm() {
        let mut object = deployment();
        let entries = object.metadata.managed_fields.as_mut().unwrap();
        entries[0].fields_v1 = Some(FieldsV1(json!({
            "f:spec": {"k:no json": {}, "f:replicas": [1], "f:strategy": {"k:{\"a\":1}": 7}},
            "f:metadata": 7, "x": {},
        })));
        assert!(owned_fields(&object, "ours", "").unwrap().is_some());
        assert!(upgrade_to_apply(&object, &["old"], "ours", "").is_some());
    }

    #[test]
    fn updates_become_applied_fields_of_the_new_manager() {
        let Some(Patch::Json(patch)) = upgrade_to_apply(&deployment(), &["old"], "ours", "") else {
            panic!("there is something to change");
        };
        assert_eq!(patch[1]["value"], "7");
        let entries = patch[0]["value"].as_array().unwrap();
        // The status and the fields of another version keep their owners.
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0]["fieldsV1"]["f:spec"]["f:paused"], json!({}));
        assert_eq!(entries[0]["fieldsV1"]["f:spec"]["f:replicas"], json!({}));
        assert_eq!(entries[1]["subresource"], "status");
        assert_eq!(entries[2]["apiVersion"], "apps/v1beta1");
    }

    #[test]
    fn without_applied_fields_the_first_update_becomes_them() {
        let Some(Patch::Json(patch)) = upgrade_to_apply(&deployment(), &["old"], "new", "status")
        else {
            panic!("there is something to change");
        };
        let changed = &patch[0]["value"][2];
        assert_eq!((&changed["manager"], &changed["operation"]), (&json!("new"), &json!("Apply")));
        assert_eq!(patch[0]["value"].as_array().unwrap().len(), 4);
        assert!(upgrade_to_apply(&deployment(), &["nobody"], "new", "").is_none());
    }
}
