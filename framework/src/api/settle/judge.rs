//! Compares an object with a write: the comparison alone, without any request.

use serde_json::{Map, Value};

use super::decoded;
use crate::client::PatchType;
use crate::error::UncertainWrite;

const GONE: &str = "the object is gone: it was deleted after the write, or before it";
const OTHERS: &str = "an object of that name has other content: somebody else made it, or changed it \
                      since";
const OVERWRITTEN: &str = "the object is at another version and has other content: somebody else \
                           wrote before or after; read it and decide again";
const AGAIN: &str = "the object has other content: an apply may be sent again";
const ENDING: &str = "an object of that name is being deleted: it may be an older one, or the one \
                      that was created; wait until it is gone";
const REPLACED: &str = "another object has its name now";
const NO_UID: &str = "an object of that name is there, and no uid was sent that would tell whether \
                      it is the same; send deletions with a uid";

/// Result of the comparison; see [`Settled`](super::Settled).
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Happened,
    Gone,
    NotHappened,
    Unknown(&'static str),
}

/// Compares the `stored` object, if any, with the request. `status`: the write was to the status.
pub(super) fn judge(
    doubt: &UncertainWrite,
    sent: &Value,
    stored: Option<&Value>,
    status: bool,
) -> Verdict {
    match (doubt.method.as_str(), stored) {
        ("DELETE", _) => judge_delete(sent, stored),
        ("POST", None) => Verdict::NotHappened,
        ("POST", Some(stored)) if is_marked(stored) => Verdict::Unknown(ENDING),
        ("POST", Some(stored)) if wanted(sent, stored, status) => Verdict::Happened,
        ("POST", Some(_)) => Verdict::Unknown(OTHERS),
        ("PUT", _) => judge_change(Change::Whole, sent, stored, status),
        _ => match PatchType::of(&doubt.content_type) {
            Some(PatchType::Apply) => judge_apply(doubt, sent, stored, status),
            form => judge_change(Change::Part(form), sent, stored, status),
        },
    }
}

/// A deletion: the object is gone, marked, or untouched.
fn judge_delete(options: &Value, stored: Option<&Value>) -> Verdict {
    let Some(stored) = stored else { return Verdict::Gone };
    let asked = |key: &str| text(options, &format!("/preconditions/{key}"));
    let (uid, version) = (asked("uid"), asked("resourceVersion"));
    if uid.is_some() && uid != text(stored, "/metadata/uid") {
        Verdict::Gone
    } else if is_marked(stored) {
        Verdict::Happened
    } else if uid.is_some() || (version.is_some() && version == text(stored, VERSION)) {
        Verdict::NotHappened
    } else {
        Verdict::Unknown(NO_UID)
    }
}

/// Whether the object is marked for deletion.
fn is_marked(stored: &Value) -> bool {
    text(stored, "/metadata/deletionTimestamp").is_some()
}

/// JSON pointer to the resourceVersion.
const VERSION: &str = "/metadata/resourceVersion";

/// A write other than an apply.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// A replacement of the whole object.
    Whole,
    /// A patch.
    Part(Option<PatchType>),
}

/// A replacement or a patch: by the version first, then by the content.
fn judge_change(change: Change, sent: &Value, stored: Option<&Value>, status: bool) -> Verdict {
    let Some(stored) = stored else { return Verdict::Unknown(GONE) };
    let operations = sent.as_array();
    let version = match operations {
        Some(operations) => operations
            .iter()
            .find(|operation| operation["op"] == "test" && operation["path"] == VERSION)
            .and_then(|operation| operation["value"].as_str().map(str::to_owned)),
        None => text(sent, VERSION),
    };
    let uid = text(sent, "/metadata/uid");
    if uid.is_some() && uid != text(stored, "/metadata/uid") {
        return Verdict::Unknown(REPLACED);
    }
    // Still the version that the write was based on.
    if version.is_some() && version == text(stored, VERSION) {
        return Verdict::NotHappened;
    }
    // If the status is no subresource, the write includes it.
    let agrees = status || holds(&sent["status"], stored.get("status"), Lists::Whole);
    let happened = match (operations, change) {
        (Some(operations), _) => operations.iter().all(|operation| is_done(operation, stored)),
        (None, Change::Whole) => {
            (status || is_same(&sent["status"], &stored["status"]))
                && wanted(sent, stored, status)
                && wanted(stored, sent, status)
        }
        // Only this form of patch merges lists item by item.
        (None, Change::Part(Some(PatchType::Strategic))) => agrees && wanted(sent, stored, status),
        (None, Change::Part(_)) => {
            let (sent, stored) = (content(sent, status), content(stored, status));
            agrees && sent.is_object() && holds(&sent, Some(&stored), Lists::Whole)
        }
    };
    match happened {
        true => Verdict::Happened,
        false => Verdict::Unknown(OVERWRITTEN),
    }
}

/// An apply happened when the server lists exactly the sent fields as this manager's, and stores
/// them as sent. Anything else may be sent again, so an unknown fate costs nothing.
fn judge_apply(
    doubt: &UncertainWrite,
    sent: &Value,
    stored: Option<&Value>,
    status: bool,
) -> Verdict {
    let Some(stored) = stored else { return Verdict::NotHappened };
    let uid = text(sent, "/metadata/uid");
    if uid.is_some() && uid != text(stored, "/metadata/uid") {
        return Verdict::Unknown(REPLACED);
    }
    let version = text(sent, VERSION);
    // Still the version that the apply was based on.
    if version.is_some() && version == text(stored, VERSION) {
        return Verdict::NotHappened;
    }
    let manager = parameter(&doubt.query, "fieldManager").unwrap_or_default();
    let entries = stored["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut own = entries.filter(|entry| {
        entry["operation"] == "Apply"
            && entry["manager"] == *manager
            && (entry["subresource"] == "status") == status
            && entry["apiVersion"] == sent["apiVersion"]
    });
    let (asked, now) = (applied(sent), applied(stored));
    let is_owned = own.next().is_some_and(|entry| owns(&entry["fieldsV1"], &asked, Some(&now)));
    if is_owned { Verdict::Happened } else { Verdict::Unknown(AGAIN) }
}

/// The object without the fields that every apply contains.
fn applied(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(members) = &mut object {
        members.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind"));
        if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
            for key in ["name", "namespace", "uid", "resourceVersion"] {
                metadata.remove(key);
            }
        }
        members.retain(|key, value| key != "metadata" || !is_empty(value));
    }
    object
}

/// Whether the fields of `sent` are those of `fields`, and stored as sent.
fn owns(fields: &Value, sent: &Value, stored: Option<&Value>) -> bool {
    let (Value::Object(fields), Some(stored)) = (fields, stored) else { return false };
    let (false, Value::Object(members)) = (fields.is_empty(), sent) else {
        return is_same(sent, stored);
    };
    let all_sent = fields.keys().filter_map(|key| key.strip_prefix("f:"));
    let mut all_sent = all_sent.map(|key| members.get(key));
    all_sent.all(|value| value.is_some())
        && members.iter().all(|(key, value)| match fields.get(&format!("f:{key}")) {
            Some(fields) => owns(fields, value, stored.get(key)),
            // A null has no owner.
            None => value.is_null(),
        })
}

/// The value of a query parameter.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value))
}

/// A text at a JSON pointer; `None` when it is empty.
pub(super) fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Whether `stored` has everything that `sent` names, in the parts that the write could change.
fn wanted(sent: &Value, stored: &Value, status: bool) -> bool {
    let (sent, stored) = (content(sent, status), content(stored, status));
    sent.is_object() && holds(&sent, Some(&stored), Lists::Items)
}

/// The parts of an object that its writers decide.
fn content(object: &Value, status: bool) -> Value {
    let mut kept = Map::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "status" if status => kept.insert(key.clone(), value.clone()),
            _ if status => None,
            "apiVersion" | "kind" | "status" => None,
            "metadata" => {
                let own = ["labels", "annotations", "finalizers", "ownerReferences"];
                let members = value.as_object().into_iter().flatten();
                // Directives of strategic merge patches begin with a `$`.
                let own = members.filter(|(key, _)| own.contains(&&***key) || key.starts_with('$'));
                let own = own.map(|(key, value)| (key.clone(), value.clone()));
                kept.insert(key.clone(), Value::Object(own.collect()))
            }
            _ => kept.insert(key.clone(), value.clone()),
        };
    }
    Value::Object(kept)
}

/// Comparison of lists.
#[derive(Clone, Copy, Debug)]
enum Lists {
    /// Item by item: a stored item may contain more.
    Items,
    /// As a whole: a stored item contains nothing more.
    Whole,
}

/// Whether `stored` has all of `written`. Empty, `null` and missing values are equal.
fn holds(written: &Value, stored: Option<&Value>, lists: Lists) -> bool {
    match (written, stored) {
        (Value::Object(written), Some(Value::Object(stored))) => {
            written.iter().all(|(key, value)| holds(value, stored.get(key), lists))
        }
        (Value::Array(written), Some(Value::Array(stored))) => {
            let same = |one: &Value, other: &Value| match lists {
                Lists::Items => holds(one, Some(other), lists),
                Lists::Whole => is_same(one, other),
            };
            written.len() == stored.len() && written.iter().zip(stored).all(|(a, b)| same(a, b))
        }
        (written, None) => is_empty(written),
        (written, Some(stored)) => written == stored || (is_empty(written) && is_empty(stored)),
    }
}

/// Whether both values are equal; empty, `null` and missing values are.
fn is_same(one: &Value, other: &Value) -> bool {
    holds(one, Some(other), Lists::Whole) && holds(other, Some(one), Lists::Whole)
}

/// Whether the value counts as missing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// Whether `stored` shows the effect of one operation of a JSON patch.
fn is_done(operation: &Value, stored: &Value) -> bool {
    let path = operation["path"].as_str().unwrap_or_default();
    // Positions in lists move with other writes: they prove nothing.
    let mut above = path.match_indices('/').map(|(at, _)| &path[..at]);
    let in_list = above.any(|above| stored.pointer(above).is_some_and(Value::is_array));
    match operation["op"].as_str() {
        Some("test") => true,
        Some("add" | "replace") if !in_list => {
            stored.pointer(path).is_some_and(|value| is_same(&operation["value"], value))
        }
        Some("remove") if !in_list => stored.pointer(path).is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Method;
    use serde_json::json;

    use super::*;

    fn verdict(method: Method, sent: &Value, stored: Option<Value>) -> Verdict {
        let form = if sent.is_array() { PatchType::Json } else { PatchType::Merge };
        judged(method, form, sent, stored)
    }

    fn judged(method: Method, form: PatchType, sent: &Value, stored: Option<Value>) -> Verdict {
        let doubt = UncertainWrite {
            method,
            host: String::new(),
            path: String::new(),
            query: "force=true&fieldManager=a%20b".to_owned(),
            content_type: form.content_type().to_owned(),
            body: Bytes::new(),
        };
        judge(&doubt, sent, stored.as_ref(), false)
    }

    fn patched(form: PatchType, sent: &Value, stored: Value) -> Verdict {
        judged(Method::PATCH, form, sent, Some(stored))
    }

    fn map(version: &str, data: Value) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": { "name": "a", "uid": "u", "resourceVersion": version },
        })
    }

    #[test]
    fn a_creation_happened_when_the_object_has_all_that_was_sent() {
        let sent =
            json!({ "metadata": { "name": "a", "labels": { "l": "1" } }, "data": { "k": "1" } });
        let mut stored = map("5", json!({ "k": "1", "defaulted": "x" }));
        stored["metadata"]["labels"] = json!({ "l": "1", "more": "2" });
        assert_eq!(verdict(Method::POST, &sent, None), Verdict::NotHappened);
        assert_eq!(verdict(Method::POST, &sent, Some(stored.clone())), Verdict::Happened);
        stored["data"]["k"] = json!("2");
        assert_eq!(verdict(Method::POST, &sent, Some(stored)), Verdict::Unknown(OTHERS));
    }

    #[test]
    fn a_replacement_is_judged_by_version_and_by_its_whole_content() {
        let sent = map("5", json!({ "k": "1" }));
        let put = |stored| verdict(Method::PUT, &sent, stored);
        assert_eq!(put(Some(map("5", json!({ "k": "0" })))), Verdict::NotHappened);
        assert_eq!(put(Some(map("6", json!({ "k": "1" })))), Verdict::Happened);
        // A key that the replacement would have removed still exists.
        let more = map("6", json!({ "k": "1", "old": "x" }));
        assert_eq!(put(Some(more)), Verdict::Unknown(OVERWRITTEN));
        assert_eq!(put(None), Verdict::Unknown(GONE));
        let mut other = map("6", json!({ "k": "1" }));
        other["metadata"]["uid"] = json!("another");
        assert_eq!(put(Some(other)), Verdict::Unknown(REPLACED));
    }

    #[test]
    fn patches_are_judged_by_what_they_name() {
        let patch = |sent: Value, stored| verdict(Method::PATCH, &sent, Some(stored));
        let now = map("6", json!({ "k": "1", "other": "x" }));
        let merge = |data: Value| json!({ "data": data });
        assert_eq!(patch(merge(json!({ "k": "1", "gone": null })), now.clone()), Verdict::Happened);
        let missed = Verdict::Unknown(OVERWRITTEN);
        assert_eq!(patch(merge(json!({ "other": null })), now.clone()), missed);
        let guarded = json!({ "metadata": { "resourceVersion": "6" }, "data": { "k": "2" } });
        assert_eq!(patch(guarded, now.clone()), Verdict::NotHappened);
        let ops = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": "5" },
            { "op": "replace", "path": "/data/k", "value": "1" },
            { "op": "remove", "path": "/data/gone" },
        ]);
        assert_eq!(patch(ops.clone(), now.clone()), Verdict::Happened);
        assert_eq!(patch(ops, map("5", json!({ "k": "0" }))), Verdict::NotHappened);
        let mut listed = now;
        listed["metadata"]["finalizers"] = json!(["a"]);
        let add = json!([{ "op": "add", "path": "/metadata/finalizers/0", "value": "a" }]);
        assert_eq!(patch(add, listed), Verdict::Unknown(OVERWRITTEN));
    }

    #[test]
    fn an_apply_that_created_nothing_did_not_happen() {
        let sent = map("", json!({ "k": "1" }));
        let apply = |stored| judged(Method::PATCH, PatchType::Apply, &sent, stored);
        assert_eq!(apply(None), Verdict::NotHappened);
        let other = Some(map("6", json!({ "k": "2" })));
        assert_eq!(apply(other), Verdict::Unknown(AGAIN));
    }

    /// `map` as it is after an apply of these fields.
    fn owned(version: &str, data: Value, fields: Value) -> Value {
        let mut map = map(version, data);
        map["metadata"]["managedFields"] = json!([
            { "manager": "else", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {} },
            { "manager": "a b", "operation": "Update", "apiVersion": "v1", "fieldsV1": {} },
            { "manager": "a b", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields },
        ]);
        map
    }

    #[test]
    fn an_apply_happened_when_its_manager_has_the_fields_that_were_sent_and_no_others() {
        let mut sent = map("", json!({ "k": "1" }));
        sent["metadata"].as_object_mut().unwrap().retain(|key, _| key == "name");
        let apply = |stored| patched(PatchType::Apply, &sent, stored);
        let unknown = Verdict::Unknown(AGAIN);
        let of = |keys: &[&str]| -> Value {
            let keys = keys.iter().map(|key| (format!("f:{key}"), json!({})));
            json!({ "f:data": Value::Object(keys.collect()) })
        };
        let both = json!({ "k": "1", "old": "x" });
        assert_eq!(apply(owned("6", json!({ "k": "1" }), of(&["k"]))), Verdict::Happened);
        assert_eq!(apply(owned("6", both.clone(), of(&["k"]))), Verdict::Happened);
        // The apply would have given the field up.
        assert_eq!(apply(owned("6", both.clone(), of(&["k", "old"]))), unknown);
        // Another writer set the same value: the field has another owner.
        assert_eq!(apply(owned("6", both, of(&["old"]))), unknown);
        assert_eq!(apply(map("6", json!({ "k": "1" }))), unknown);
        assert_eq!(apply(owned("6", json!({ "k": "2" }), of(&["k"]))), unknown);
        // A map that is owned as a whole.
        let whole = json!({ "f:data": {} });
        assert_eq!(apply(owned("6", json!({ "k": "1" }), whole.clone())), Verdict::Happened);
        assert_eq!(apply(owned("6", json!({ "k": "1", "o": "x" }), whole)), unknown);
    }

    #[test]
    fn a_patch_that_names_its_kind_is_no_apply() {
        let sent = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "1" } });
        let merge = |stored| judged(Method::PATCH, PatchType::Merge, &sent, stored);
        assert_eq!(merge(None), Verdict::Unknown(GONE));
        assert_eq!(merge(Some(map("6", json!({ "k": "2" })))), Verdict::Unknown(OVERWRITTEN));
    }

    #[test]
    fn a_value_that_a_patch_replaces_has_nothing_left_over() {
        let unknown = Verdict::Unknown(OVERWRITTEN);
        let now = map("6", json!({ "k": "1", "old": "x" }));
        let replace = json!([{ "op": "replace", "path": "/data", "value": { "k": "1" } }]);
        assert_eq!(patched(PatchType::Json, &replace, now.clone()), unknown);
        let exact = map("6", json!({ "k": "1" }));
        assert_eq!(patched(PatchType::Json, &replace, exact), Verdict::Happened);
        let mut listed = now;
        listed["spec"] = json!({ "list": [{ "name": "a", "image": "x" }] });
        let deep = json!([{ "op": "replace", "path": "/spec/list/0/image", "value": "x" }]);
        assert_eq!(patched(PatchType::Json, &deep, listed.clone()), unknown);
        let merge = json!({ "spec": { "list": [{ "name": "a" }] } });
        assert_eq!(patched(PatchType::Merge, &merge, listed.clone()), unknown);
        assert_eq!(patched(PatchType::Strategic, &merge, listed), Verdict::Happened);
    }

    #[test]
    fn directives_of_strategic_patches_show_nothing() {
        let mut now = map("6", json!({}));
        now["metadata"]["finalizers"] = json!(["mine"]);
        let drop = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["mine"] } });
        let unknown = Verdict::Unknown(OVERWRITTEN);
        assert_eq!(patched(PatchType::Strategic, &drop, now), unknown);
    }

    /// If the status is no subresource, a replace or patch includes it.
    #[test]
    fn a_status_that_was_sent_along_must_not_have_been_lost() {
        let mut sent = map("5", json!({ "k": "1" }));
        sent["status"] = json!({ "ready": true });
        let mut now = map("6", json!({ "k": "1" }));
        now["status"] = json!({ "ready": false });
        let unknown = Verdict::Unknown(OVERWRITTEN);
        assert_eq!(verdict(Method::PUT, &sent, Some(now.clone())), unknown);
        let patch = json!({ "status": { "ready": true } });
        assert_eq!(patched(PatchType::Merge, &patch, now.clone()), unknown);
        now["status"] = json!({ "ready": true, "more": 1 });
        assert_eq!(verdict(Method::PUT, &sent, Some(now.clone())), unknown);
        assert_eq!(patched(PatchType::Merge, &patch, now.clone()), Verdict::Happened);
        now["status"] = json!({ "ready": true });
        assert_eq!(verdict(Method::PUT, &sent, Some(now)), Verdict::Happened);
    }

    #[test]
    fn a_creation_did_not_make_the_object_that_was_ending_before_it() {
        let sent = map("", json!({ "k": "1" }));
        let mut old = map("6", json!({ "k": "1" }));
        old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(verdict(Method::POST, &sent, Some(old)), Verdict::Unknown(ENDING));
    }

    #[test]
    fn a_deletion_is_judged_by_mark_and_uid() {
        let delete = |sent: Value, stored| verdict(Method::DELETE, &sent, stored);
        let uid = |uid: &str| json!({ "preconditions": { "uid": uid } });
        let there = map("6", json!({}));
        assert_eq!(delete(Value::Null, None), Verdict::Gone);
        assert_eq!(delete(Value::Null, Some(there.clone())), Verdict::Unknown(NO_UID));
        assert_eq!(delete(uid("u"), Some(there.clone())), Verdict::NotHappened);
        assert_eq!(delete(uid("before"), Some(there.clone())), Verdict::Gone);
        let mut marked = there;
        marked["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(delete(uid("u"), Some(marked)), Verdict::Happened);
    }

    #[test]
    fn a_status_write_is_judged_by_the_status_alone() {
        let sent =
            json!({ "metadata": { "resourceVersion": "5" }, "spec": 1, "status": { "a": 1 } });
        let stored =
            json!({ "metadata": { "resourceVersion": "6" }, "spec": 2, "status": { "a": 1 } });
        assert_eq!(judge_change(Change::Whole, &sent, Some(&stored), true), Verdict::Happened);
        assert_ne!(judge_change(Change::Whole, &sent, Some(&stored), false), Verdict::Happened);
    }
}
