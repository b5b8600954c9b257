//! Rules for `metadata` that apply to every kind.
//!
//! Fields that the server owns are set or restored here, the rest is checked with upstream's texts.
//! The store decides about versions.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Kind;
use crate::clock;
use crate::go::{self, mismatch};
use crate::names::{self, NameRule};
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required};

mod changes;

pub(crate) use changes::{MetadataFaults, check_change, finalizer_warnings};

/// Fields of `ObjectMeta`; others are unknown.
const FIELDS: &[&str] = &[
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns a text of the metadata; empty when absent.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the finalizers.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Removes an empty list of managers, which a webhook may have set.
pub(crate) fn drop_owners(object: &mut Value) {
    if object["metadata"]["managedFields"].as_array().is_some_and(Vec::is_empty) {
        set(object, "managedFields", Value::Null);
    }
}

/// Whether a deletion is under way.
pub(crate) fn terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns the generation; 0 when absent.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// Returns the metadata as a map; makes a missing map.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let metadata = &mut object["metadata"];
    if !metadata.is_object() {
        *metadata = json!({});
    }
    match metadata {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

/// Sets a field, or removes it for a null value.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if value.is_null() {
        of(object).remove(field);
    } else {
        of(object).insert(field.to_owned(), value);
    }
}

/// Copies a field of the metadata, absence too.
pub(crate) fn copy(from: &Value, to: &mut Value, field: &str) {
    set(to, field, from["metadata"].get(field).cloned().unwrap_or(Value::Null));
}

/// Fields of an owner reference, in Go's order.
const OWNER_FIELDS: [&str; 6] =
    ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// Brings metadata into the form in which metadata is stored, and returns the unknown fields that
/// were dropped.
pub(crate) fn clean(object: &mut Value) -> Vec<String> {
    let fields = of(object);
    let unknown: Vec<String> =
        fields.keys().filter(|key| !FIELDS.contains(&key.as_str())).cloned().collect();
    fields.retain(|key, value| {
        let empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            // An empty list of managed fields is a request to reset them.
            Value::Array(items) => items.is_empty() && key != "managedFields",
            Value::Object(entries) => entries.is_empty(),
            Value::Number(number) => key == "generation" && number.as_i64() == Some(0),
            Value::Bool(_) => false,
        };
        // `selfLink` is known but no longer stored.
        !empty && FIELDS.contains(&key.as_str()) && key != "selfLink"
    });
    fill_nulls(fields);
    let mut unknown: Vec<String> =
        unknown.into_iter().map(|key| format!("metadata.{key}")).collect();
    let owners = fields.get_mut("ownerReferences").and_then(Value::as_array_mut);
    for (index, owner) in owners.into_iter().flatten().enumerate() {
        let Value::Object(owner) = owner else { continue };
        owner.retain(|key, value| {
            let is_known = OWNER_FIELDS.contains(&key.as_str());
            if !is_known {
                unknown.push(format!("metadata.ownerReferences[{index}].{key}"));
            }
            is_known && !value.is_null()
        });
    }
    unknown
}

/// Turns nulls among labels, annotations and finalizers into empty texts, as decoding does.
fn fill_nulls(fields: &mut Map<String, Value>) {
    for value in ["labels", "annotations", "finalizers"] {
        let texts: Vec<&mut Value> = match fields.get_mut(value) {
            Some(Value::Object(entries)) => entries.values_mut().collect(),
            Some(Value::Array(items)) => items.iter_mut().collect(),
            _ => continue,
        };
        texts.into_iter().filter(|text| text.is_null()).for_each(|text| *text = json!(""));
    }
}

/// Fields of metadata that an apply may store empty.
const COLLECTIONS: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Whether a field of metadata is there and empty.
fn is_empty(object: &Value, field: &str) -> bool {
    match &object["metadata"][field] {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Whether a field of metadata is a map that has nulls, which are read as empty texts.
fn has_nulls(object: &Value, field: &str) -> bool {
    let entries = object["metadata"][field].as_object();
    entries.is_some_and(|entries| entries.values().any(Value::is_null))
}

/// Returns the collections of an object's metadata that are empty or have nulls. Only an apply to a
/// custom resource stores them: they are not shown, but the next write that drops them changes the
/// object.
pub(crate) fn empty(object: &Value) -> Vec<&'static str> {
    let is_odd = |field: &&str| is_empty(object, field) || has_nulls(object, field);
    COLLECTIONS.into_iter().filter(is_odd).collect()
}

/// Removes the empty collections of an object's metadata, and turns nulls in others into empty
/// texts.
pub(crate) fn drop_empty(object: &mut Value) {
    for field in empty(object) {
        if is_empty(object, field) {
            set(object, field, Value::Null);
            continue;
        }
        let entries = object["metadata"][field].as_object_mut();
        for value in entries.into_iter().flat_map(|entries| entries.values_mut()) {
            if value.is_null() {
                *value = Value::String(String::new());
            }
        }
    }
}

/// Returns the error of Go's decoder for a field of the wrong type.
pub(crate) fn wrong_type(kind: &Kind, object: &Value) -> Option<String> {
    let metadata = match object.get("metadata") {
        None | Some(Value::Null) => return None,
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            if kind.served.custom {
                let found = go::type_name(other);
                return Some(format!(
                    "json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"
                ));
            }
            return Some(mismatch(other, &format!("{}.metadata", kind.name()), "v1.ObjectMeta"));
        }
    };
    // Metadata of custom resources is decoded separately.
    let prefix = if kind.served.custom { "ObjectMeta" } else { "ObjectMeta.metadata" };
    metadata.iter().find_map(|(key, value)| check_type(prefix, key, value))
}

/// Checks the type of a field of the metadata.
fn check_type(prefix: &str, key: &str, value: &Value) -> Option<String> {
    let field = format!("{prefix}.{key}");
    match (key, value) {
        (_, Value::Null) => None,
        ("labels" | "annotations", Value::Object(entries)) => {
            let wrong = entries.values().find(|value| !value.is_string() && !value.is_null())?;
            Some(mismatch(wrong, &field, "string"))
        }
        ("labels" | "annotations", other) => Some(mismatch(other, &field, "map[string]string")),
        ("finalizers", Value::Array(items)) => {
            let wrong = items.iter().find(|item| !item.is_string() && !item.is_null())?;
            Some(mismatch(wrong, &field, "string"))
        }
        ("ownerReferences", Value::Array(items)) => {
            let wrong = items.iter().find(|item| !item.is_object())?;
            Some(mismatch(wrong, &field, "v1.OwnerReference"))
        }
        ("managedFields", Value::Array(_)) => None,
        ("finalizers", other) => Some(mismatch(other, &field, "[]string")),
        ("ownerReferences", other) => Some(mismatch(other, &field, "[]v1.OwnerReference")),
        ("managedFields", other) => Some(mismatch(other, &field, "[]v1.ManagedFieldsEntry")),
        ("generation" | "deletionGracePeriodSeconds", value) if value.is_i64() => None,
        ("generation" | "deletionGracePeriodSeconds", Value::Number(number)) => Some(format!(
            "json: cannot unmarshal number {number} into Go struct field {field} of type int64"
        )),
        ("generation" | "deletionGracePeriodSeconds", other) => Some(mismatch(other, &field, "int64")),
        ("creationTimestamp" | "deletionTimestamp", Value::String(text)) => clock::parse(text)
            .is_none()
            .then(|| format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\"")),
        (key, value) if FIELDS.contains(&key) && !value.is_string() => {
            Some(mismatch(value, &field, "string"))
        }
        _ => None,
    }
}

/// Returns the faults of a new object's metadata, including the name.
pub(crate) fn check_new(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = check_generate_name(kind, object);
    let name = text(object, "name");
    if name.is_empty() {
        if kind.facts.names != NameRule::Unchecked {
            causes.push(required("metadata.name", "name or generateName is required"));
        }
    } else {
        for why in names::check(kind.facts.names, name) {
            causes.push(invalid_value("metadata.name", &name.into(), &why));
        }
    }
    let namespace = text(object, "namespace");
    if kind.served.namespaced && namespace.is_empty() {
        causes.push(required("metadata.namespace", ""));
    } else if !kind.served.namespaced && !namespace.is_empty() {
        causes.push(forbidden_field("metadata.namespace", "not allowed on this type"));
    }
    if generation(object) < 0 {
        let why = "must be greater than or equal to 0";
        causes.push(invalid_value("metadata.generation", &generation(object).into(), why));
    }
    causes.extend(check_common(object));
    causes.extend(check_owners(object));
    causes.extend(check_finalizers(kind, object));
    causes
}

/// Returns the faults of `generateName`.
fn check_generate_name(kind: &Kind, object: &Value) -> Vec<Cause> {
    let generate = text(object, "generateName");
    if generate.is_empty() || kind.facts.names == NameRule::Declared {
        return Vec::new();
    }
    // A trailing dash is allowed, since a suffix will follow.
    let base =
        generate.strip_suffix('-').map_or_else(|| generate.to_owned(), |base| format!("{base}a"));
    let faults = names::check(kind.facts.names, &base).into_iter();
    faults.map(|why| invalid_value("metadata.generateName", &generate.into(), &why)).collect()
}

/// Returns the faults of names that the kind itself does not judge: they are parts of paths.
/// Upstream looks for these once nothing else is at fault.
pub(crate) fn check_path(kind: &Kind, object: &Value) -> Vec<Cause> {
    if !matches!(kind.facts.names, NameRule::Any | NameRule::Unchecked) {
        return Vec::new();
    }
    let mut causes = Vec::new();
    for field in ["generateName", "name"] {
        let (name, at) = (text(object, field), format!("metadata.{field}"));
        // Dots are a step to another folder only if nothing follows.
        let is_whole = |why: &String| field == "name" || !why.starts_with("may not be");
        let faults = names::path(name).into_iter().filter(is_whole);
        causes.extend(faults.map(|why| invalid_value(&at, &name.into(), &why)));
    }
    if text(object, "name").is_empty() {
        causes.push(required("metadata.name", "name or generateName is required"));
    }
    causes
}

/// Returns the faults of labels and annotations.
pub(super) fn check_common(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let entries = |field: &str| object["metadata"][field].as_object().cloned().unwrap_or_default();
    for (key, value) in entries("labels") {
        for why in names::qualified(&key) {
            causes.push(invalid_value("metadata.labels", &key.clone().into(), &why));
        }
        for why in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(invalid_value("metadata.labels", &value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in entries("annotations") {
        // Prefixes of annotations may have upper case, those of labels may not.
        for why in names::qualified(&key.to_lowercase()) {
            causes.push(invalid_value("metadata.annotations", &key.clone().into(), &why));
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    // Upstream's limit for all annotations of an object.
    if size > 256 * 1024 {
        let message = "Too long: may not be more than 262144 bytes";
        causes.push(cause("FieldValueTooLong", "metadata.annotations", message));
    }
    causes
}

/// Returns the faults of owner references.
fn check_owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let field = "metadata.ownerReferences";
    let mut controller: Option<String> = None;
    let owners = &object["metadata"]["ownerReferences"];
    for owner in owners.as_array().into_iter().flatten() {
        let part = |name: &str| owner[name].as_str().unwrap_or_default();
        for (name, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            // A group has no slash.
            let is_odd = name == "apiVersion" && part(name).matches('/').count() > 1;
            if part(name).is_empty() || is_odd {
                causes.push(invalid_value(&format!("{field}.{name}"), &json!(part(name)), why));
            }
        }
        if part("kind") == "Event" && part("apiVersion") == "v1" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            let message = format!("Invalid value: {}: {why}", show_owner(owner));
            causes.push(cause("FieldValueInvalid", field, message));
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", part("kind"), part("name"));
            match &controller {
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let shown: Vec<String> =
                        owners.as_array().into_iter().flatten().map(show_owner).collect();
                    let message = format!("Invalid value: [{}]: {why}", shown.join(","));
                    causes.push(cause("FieldValueInvalid", field, message));
                }
                None => controller = Some(this),
            }
        }
    }
    causes
}

/// Formats an owner reference with fields in Go's order.
fn show_owner(owner: &Value) -> String {
    let shown = OWNER_FIELDS.iter().filter_map(|field| {
        let value = owner.get(*field).filter(|value| !value.is_null())?;
        Some(format!("{field:?}:{value}"))
    });
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

/// Returns the faults of the finalizers of a new object.
fn check_finalizers(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = finalizer_names(object);
    causes.extend(unqualified_finalizers(kind, object));
    causes
}

/// Groups, beside those of custom resources, whose finalizers need no domain.
const PLAIN_FINALIZERS: [&str; 4] =
    ["admissionregistration.k8s.io", "apiextensions.k8s.io", "coordination.k8s.io", "node.k8s.io"];

/// Returns the faults of the names of finalizers.
fn finalizer_names(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let held = finalizers(object);
    for finalizer in &held {
        for why in names::qualified(finalizer) {
            causes.push(invalid_value("metadata.finalizers", &finalizer.clone().into(), &why));
        }
    }
    let has = |name: &str| held.iter().any(|finalizer| finalizer == name);
    // The two policies contradict each other.
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(invalid_value("metadata.finalizers", &json!(held), why));
    }
    causes
}

/// Returns the faults of finalizers without a domain, which most built-in kinds refuse.
fn unqualified_finalizers(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if kind.served.custom || PLAIN_FINALIZERS.contains(&kind.served.group.as_str()) {
        return causes;
    }
    for (index, finalizer) in finalizers(object).into_iter().enumerate() {
        let standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer.as_str());
        if !standard && !finalizer.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            let field = format!("metadata.finalizers[{index}]");
            causes.push(invalid_value(&field, &finalizer.into(), why));
        }
    }
    causes
}

/// Restores the fields that a writer may not change.
pub(crate) fn restore(old: &Value, new: &mut Value) {
    // A uid that the client names is kept, because a wrong uid must be reported.
    if text(new, "uid").is_empty() {
        copy(old, new, "uid");
    }
    copy(old, new, "creationTimestamp");
    // The generation is the server's; `grow` increments it afterwards.
    copy(old, new, "generation");
    if terminating(old) {
        copy(old, new, "deletionTimestamp");
    }
    let grace = "deletionGracePeriodSeconds";
    if old["metadata"][grace].is_i64() && new["metadata"][grace].is_null() {
        copy(old, new, grace);
    }
}

/// Drops repeated owner references; returns a warning if there were any.
pub(crate) fn dedup_owners(object: &mut Value, patched: bool) -> Option<String> {
    let Some(Value::Array(owners)) = of(object).get_mut("ownerReferences") else { return None };
    let mut seen: Vec<Value> = Vec::new();
    let mut repeated: Vec<String> = Vec::new();
    // By text, since equal values are written alike; a comparison with each would be quadratic.
    let (mut texts, mut uids) = (BTreeSet::new(), BTreeSet::new());
    for owner in owners.drain(..) {
        if texts.insert(owner.to_string()) {
            seen.push(owner);
            continue;
        }
        let uid = owner["uid"].as_str().unwrap_or_default().to_owned();
        if uids.insert(uid.clone()) {
            repeated.push(uid);
        }
    }
    *owners = seen;
    let list = repeated.join(", ");
    (!repeated.is_empty()).then(|| {
        let when = if patched { " after mutating admission happens" } else { "" };
        format!(".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {list}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::builtin;

    fn kind() -> Kind {
        builtin::kinds().into_iter().find(|kind| kind.name() == "ConfigMap").unwrap()
    }

    #[test]
    fn cleaning_drops_what_is_empty_and_names_what_is_unknown() {
        let mut object = json!({"metadata": {
            "name": "a", "labels": {}, "finalizers": [], "creationTimestamp": null, "bogus": 1,
        }});
        assert_eq!(clean(&mut object), ["metadata.bogus"]);
        assert_eq!(object, json!({"metadata": {"name": "a"}}));
    }

    #[test]
    fn a_name_that_the_kind_does_not_judge_is_still_part_of_a_path() {
        let kinds = builtin::kinds();
        let kind = |name: &str| kinds.iter().find(|kind| kind.name() == name).unwrap();
        let fields = |name: &str, metadata: Value| {
            let found = check_path(kind(name), &json!({ "metadata": metadata }));
            found.into_iter().map(|cause| cause.field).collect::<Vec<_>>()
        };
        for name in ["Event", "PodDisruptionBudget"] {
            assert_eq!(fields(name, json!({"name": "A b"})), [""; 0]);
            assert_eq!(
                fields(name, json!({"name": "..", "generateName": ".."})),
                ["metadata.name"]
            );
            let both = json!({"name": "a/b", "generateName": "a/"});
            assert_eq!(fields(name, both), ["metadata.generateName", "metadata.name"]);
            assert_eq!(fields(name, json!({})), ["metadata.name"]);
        }
        assert_eq!(fields("ConfigMap", json!({"name": "a/b"})), [""; 0], "it judges names");
    }

    #[test]
    fn the_beginning_of_a_generated_name_is_judged_as_a_name() {
        let kinds = builtin::kinds();
        let faults = |name: &str, generate: &str| {
            let kind = kinds.iter().find(|kind| kind.name() == name).unwrap();
            check_generate_name(kind, &json!({"metadata": {"generateName": generate}})).len()
        };
        assert_eq!((faults("ConfigMap", "a-"), faults("ConfigMap", "A")), (0, 1));
        assert_eq!(faults("ConfigMap", &"a".repeat(254)), 1);
        assert_eq!(
            (faults("Namespace", &"a".repeat(63)), faults("Namespace", &"a".repeat(64))),
            (0, 1)
        );
        assert_eq!(faults("ReplicationController", "A"), 0, "a declared rule");
    }

    #[test]
    fn two_controllers_among_the_owners_are_one_too_many() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "A", "name": name, "uid": name, "controller": true});
        let object = json!({"metadata": {"ownerReferences": [owner("x"), owner("y")]}});
        assert_eq!(check_owners(&object).len(), 1);
        let mut twice = json!({"metadata": {"ownerReferences": [owner("x"), owner("x")]}});
        assert!(dedup_owners(&mut twice, false).unwrap().ends_with("observed: x"));
        assert_eq!(check_owners(&twice), []);
    }

    #[test]
    fn wrong_types_are_worded_as_gos_decoder_does() {
        assert_eq!(
            wrong_type(&kind(), &json!({"metadata": {"labels": {"a": 5}}})).unwrap(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
        );
        assert_eq!(wrong_type(&kind(), &json!({"metadata": {"labels": null, "name": "a"}})), None);
    }
}
