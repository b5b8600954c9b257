//! Comparison of the answers to dry runs with the stored objects.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::record::RecordEntries;
use super::{PlannedAction, PlannedChange, PlannedField};
use crate::controller::state::{
    FieldChange, MANY_PATHS, every_difference, is_confidential, without_fights,
};
use windlass_client::client::{Client, DryRunResponse, Prepared};
use windlass_core::error::Error;
use windlass_core::resource::{ObjectKey, Verb};

/// Most objects of a deleted collection that are named.
const MOST_DELETED: usize = 1_000;
/// Groups whose objects are questions: their creation stores nothing.
const QUESTIONS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];
/// Groups of Events; others may have a kind of that plural, too.
const EVENTS: [&str; 2] = ["", "events.k8s.io"];
/// Remark on an update of an object that has a time of deletion.
const TERMINATING: &str = "the object is being deleted";

/// Changes of a reconcile so far.
struct DryRunComparison<'a> {
    client: &'a Client,
    /// Kind and name of the reconciled object.
    owner: (&'a str, &'a str),
    changes: Vec<PlannedChange>,
    /// Stored objects by path, as they were read; `None` for an object that does not exist.
    stored: BTreeMap<String, Option<Value>>,
}

impl RecordEntries {
    /// Returns the changes that the recorded writes would make for the owner of that kind and name,
    /// and the calls of other systems. Stored objects are read by `client`.
    ///
    /// # Cancel safety
    /// Safe: only reads are sent.
    pub(in crate::controller) async fn changes(
        self,
        client: &Client,
        owner: (&str, &str),
    ) -> (Vec<PlannedChange>, Vec<String>) {
        let (changes, stored) = (Vec::new(), BTreeMap::new());
        let mut comparison = DryRunComparison { client, owner, changes, stored };
        for write in &self.writes {
            comparison.add(write).await;
        }
        let mut calls = self.external_calls;
        if self.dropped > 0 {
            calls.push(format!("{} further writes and calls, which are not listed", self.dropped));
        }
        (comparison.changes, calls)
    }
}

impl DryRunComparison<'_> {
    /// Adds the effect of a write.
    async fn add(&mut self, write: &DryRunResponse) {
        let is_question = QUESTIONS.contains(&write.group.as_str());
        // Events are reports, and no state that a plan is about.
        let is_event = write.resource == "events" && EVENTS.contains(&write.group.as_str());
        if is_question || is_event {
            return;
        }
        let subresource = write.subresource.as_deref();
        match (write.verb, subresource) {
            (_, Some("token")) => {}
            (Verb::Create, None) => self.created(write),
            (Verb::Create, Some(_)) => self.merge(change(write, PlannedAction::Call)),
            (Verb::Update | Verb::Patch | Verb::Apply, None) if write.code == 201 => {
                self.created(write);
            }
            (Verb::Update | Verb::Patch | Verb::Apply, _) => self.updated(write).await,
            (Verb::Delete, _) => self.deleted(write).await,
            (Verb::DeleteCollection, _) => self.deleted_all(write).await,
            (Verb::Get | Verb::List | Verb::Watch, _) => {}
        }
    }

    /// Adds a creation, with the fields that the operator sends: the answer has defaults, too, and
    /// values that the API server chooses anew each time.
    fn created(&mut self, write: &DryRunResponse) {
        let answer = json(&write.answer);
        let sent = if write.body.is_empty() { &write.answer } else { &write.body };
        let mut sent = json(sent);
        let text = |value: &Value, name: &str| value["metadata"][name].as_str().map(str::to_owned);
        let named = write.name.clone().or_else(|| text(&sent, "name"));
        let generated = text(&sent, "generateName").map(|beginning| format!("{beginning}*"));
        let mut is_owned = false;
        let name = named.or(generated).or_else(|| text(&answer, "name")).unwrap_or_default();
        if let Some(Value::Object(metadata)) = sent.get_mut("metadata") {
            // Name and place are shown anyway; the version is a condition of the write.
            for shown in ["name", "namespace", "generateName", "resourceVersion"] {
                metadata.remove(shown);
            }
            // The change stands below the owner.
            let (kind, name) = self.owner;
            if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
                let all = owners.len();
                owners.retain(|owner| owner["kind"] != kind || owner["name"] != name);
                is_owned = owners.len() < all;
            }
            if metadata.get("ownerReferences") == Some(&Value::Array(Vec::new())) {
                metadata.remove("ownerReferences");
            }
        }
        if let Value::Object(members) = &mut sent {
            members.retain(|name, value| name != "metadata" || *value != Value::Object(Map::new()));
        }
        let mut change = change(write, PlannedAction::Create);
        change.is_owned = is_owned;
        change.key = ObjectKey::new(write.namespace.as_deref(), &name);
        change.set_fields(every_difference(is_masked(write), None, &sent));
        self.merge(change);
    }

    /// Adds the difference of an update, if any.
    async fn updated(&mut self, write: &DryRunResponse) {
        let after = json(&write.answer);
        let mut change = change(write, PlannedAction::Update);
        let (before, after) = match self.before(write, &after).await {
            Ok(Some(before)) => {
                change.note = is_terminating(&before).then(|| TERMINATING.to_owned());
                with_equal_parts(write, before, after)
            }
            // Deleted since.
            Ok(None) => return,
            Err(error) => {
                change.note = Some(format!("the state before is not known: {error}"));
                change.set_fields(every_difference(is_masked(write), None, &json(&write.body)));
                return self.merge(change);
            }
        };
        let after = with_equal_remarks(&before, after);
        change.set_fields(every_difference(is_masked(write), Some(&before), &after));
        self.take_back(write, &change);
        if !change.fields.is_empty() {
            self.merge(change);
        }
    }

    /// Removes the differences of earlier updates at the paths that `write` names. Each write is
    /// based on the stored object, so the later write decides there, also when that write leaves
    /// the stored value.
    fn take_back(&mut self, write: &DryRunResponse, new: &PlannedChange) {
        let Some(place) = self.changes.iter().position(|old| is_same_object(old, new)) else {
            return;
        };
        let Some(old) = self.changes.get_mut(place) else { return };
        // `merge` replaces a planned creation or deletion as a whole.
        if old.action != PlannedAction::Update {
            return;
        }
        let (named, is_status) = (named(write), write.subresource.as_deref() == Some("status"));
        let is_named = |path: &str| match write.verb {
            // An update replaces the whole object, or the whole status.
            Verb::Update => is_within(path, ".status") == is_status,
            _ => is_within_any(path, &named),
        };
        old.retain(|field| !is_named(&field.path));
        let is_remarkable = old.note.as_deref().is_some_and(|note| note != TERMINATING);
        let is_empty = old.all_fields().next().is_none() && !is_remarkable;
        // Else the new differences take the place.
        if is_empty && new.fields.is_empty() {
            self.changes.remove(place);
        }
    }

    /// Adds a deletion, unless the object is gone or marked for deletion already.
    async fn deleted(&mut self, write: &DryRunResponse) {
        let mut change = change(write, PlannedAction::Delete);
        match self.stored(&write.path).await {
            Ok(Some(before)) if !is_terminating(&before) => {}
            Ok(_) => return,
            Err(error) => change.note = Some(format!("the state before is not known: {error}")),
        }
        self.merge(change);
    }

    /// Adds the deletion of each object of a collection.
    async fn deleted_all(&mut self, write: &DryRunResponse) {
        let what = format!("list {}, which a dry run deleted", write.resource);
        let mut request = Prepared::get(write.path.clone(), what);
        request.verb = Verb::List;
        for (name, value) in &write.selectors {
            request.push_parameter(name.clone(), value);
        }
        request.push_parameter("limit", MOST_DELETED.to_string());
        let listed = match self.client.send(request).await {
            Ok(answer) => json(&answer.body),
            Err(error) => {
                let mut change = change(write, PlannedAction::Delete);
                change.key = ObjectKey::new(write.namespace.as_deref(), "*");
                change.note = Some(format!("the state before is not known: {error}"));
                return self.merge(change);
            }
        };
        let items = listed["items"].as_array().into_iter().flatten();
        for item in items.filter(|item| !is_terminating(item)) {
            let text = |name: &str| item["metadata"][name].as_str();
            let mut change = change(write, PlannedAction::Delete);
            change.key = ObjectKey::new(text("namespace"), text("name").unwrap_or_default());
            self.merge(change);
        }
        if listed["metadata"]["continue"].as_str().is_some_and(|more| !more.is_empty()) {
            let mut change = change(write, PlannedAction::Delete);
            change.key = ObjectKey::new(write.namespace.as_deref(), "*");
            change.note = Some(format!("more than {MOST_DELETED} objects"));
            self.merge(change);
        }
    }

    /// Returns the stored object that a write changes, in the version that the answer is based on
    /// if possible.
    async fn before(
        &mut self,
        write: &DryRunResponse,
        after: &Value,
    ) -> Result<Option<Value>, Error> {
        let path = match write.subresource.as_deref() {
            // The scale is of another kind than the object: read apart.
            Some(scale @ "scale") => format!("{}/{scale}", write.path),
            _ => write.path.clone(),
        };
        let before = self.stored(&path).await?;
        if before.as_ref().is_none_or(|before| version(before) == version(after)) {
            return Ok(before);
        }
        // Others wrote since it was read.
        self.stored.remove(&path);
        self.stored(&path).await
    }

    /// Reads a stored object; `None` when there is none.
    async fn stored(&mut self, path: &str) -> Result<Option<Value>, Error> {
        if let Some(known) = self.stored.get(path) {
            return Ok(known.clone());
        }
        let request = Prepared::get(path, format!("read {path}, which a dry run changed"));
        let stored = match self.client.send(request).await {
            Ok(answer) => Some(json(&answer.body)),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(error),
        };
        self.stored.insert(path.to_owned(), stored.clone());
        Ok(stored)
    }

    /// Adds a change to that of earlier writes to the same object.
    fn merge(&mut self, new: PlannedChange) {
        let Some(old) = self.changes.iter_mut().find(|old| is_same_object(old, &new)) else {
            return self.changes.push(new);
        };
        if old.action != PlannedAction::Update || new.action != PlannedAction::Update {
            *old = new;
            return;
        }
        // Each write is based on the stored object: the later write wins where both differ from the
        // stored object.
        let newer: HashSet<&str> = new.all_fields().map(|field| field.path.as_str()).collect();
        old.retain(|field| !newer.contains(field.path.as_str()));
        old.fields.extend(new.fields);
        old.more.extend(new.more);
        old.fields.sort_by(|a, b| a.path.cmp(&b.path));
        old.bound();
        old.more.sort_by(|a, b| a.path.cmp(&b.path));
        old.note = new.note.or(old.note.take());
    }
}

/// Whether both changes concern the same object.
fn is_same_object(old: &PlannedChange, new: &PlannedChange) -> bool {
    old.resource == new.resource && old.key == new.key && !new.key.name().ends_with('*')
}

/// Returns the paths that an update names.
fn named(write: &DryRunResponse) -> HashSet<String> {
    let bodies: Vec<Value> = match json(&write.body) {
        Value::Array(steps) => {
            steps.iter().filter_map(|step| nested(step["path"].as_str()?)).collect()
        }
        body => vec![body],
    };
    let changes = bodies.iter().flat_map(|body| every_difference(false, None, body));
    // An object without members names nothing: that of a patch whose version is no difference.
    let changes = changes.filter(|change| change.to.as_deref() != Some("{}"));
    // A list of plain values is replaced as a whole.
    let list = |path: &str| {
        let (list, at) = path.strip_suffix(']')?.rsplit_once('[')?;
        at.bytes().all(|byte| byte.is_ascii_digit()).then(|| list.to_owned())
    };
    changes.flat_map(|change| list(&change.path).into_iter().chain([change.path])).collect()
}

/// Whether a path is one of `names`, or below one.
fn is_within_any(path: &str, names: &HashSet<String>) -> bool {
    let ends = path.match_indices(['.', '[']).map(|(at, _)| at).chain([path.len()]);
    ends.filter_map(|end| path.get(..end)).any(|beginning| names.contains(beginning))
}

/// Returns an object with the member that a pointer of a JSON patch names; `None` for items of
/// lists.
fn nested(pointer: &str) -> Option<Value> {
    let mut value = Value::Null;
    for name in pointer.strip_prefix('/')?.rsplit('/') {
        if name == "-" || name.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let name = name.replace("~1", "/").replace("~0", "~");
        value = Value::Object(Map::from_iter([(name, value)]));
    }
    Some(value)
}

/// Whether a path is `name`, or below `name`.
fn is_within(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns the change of a write, without fields. A write to the status counts as a write to the
/// object.
fn change(write: &DryRunResponse, action: PlannedAction) -> PlannedChange {
    let group = if write.group.is_empty() { "" } else { "." };
    let mut resource = format!("{}{group}{}", write.resource, write.group);
    if let Some(part) = write.subresource.as_deref().filter(|part| *part != "status") {
        resource.push('/');
        resource.push_str(part);
    }
    PlannedChange {
        action,
        resource,
        key: ObjectKey::new(write.namespace.as_deref(), write.name.as_deref().unwrap_or_default()),
        fields: Vec::new(),
        more_fields: 0,
        more: Vec::new(),
        is_owned: false,
        note: None,
    }
}

impl PlannedChange {
    fn set_fields(&mut self, changes: Vec<FieldChange>) {
        self.fields = changes.into_iter().map(PlannedField::from).collect();
        self.more.clear();
        self.bound();
    }

    /// Keeps the fields that `is_kept` names. Those without texts stay without.
    fn retain(&mut self, is_kept: impl Fn(&PlannedField) -> bool) {
        self.fields.retain(&is_kept);
        self.more.retain(&is_kept);
        self.bound();
    }

    /// Moves the fields behind the first 512 to those without texts.
    fn bound(&mut self) {
        if self.fields.len() > MANY_PATHS {
            let beyond = self.fields.split_off(MANY_PATHS);
            self.more.extend(beyond.into_iter().map(PlannedField::without_texts));
        }
        self.more_fields = self.more.len();
    }
}

/// Leaves parts out that others have changed between the dry run and the read of the state before,
/// and those that an answer with metadata alone does not have.
fn with_equal_parts(write: &DryRunResponse, mut before: Value, mut after: Value) -> (Value, Value) {
    if after["kind"] == "PartialObjectMetadata" {
        for state in [&mut before, &mut after] {
            if let Value::Object(members) = state {
                members.retain(|name, _| name == "metadata");
            }
        }
        return (before, after);
    }
    if version(&before) != version(&after) {
        // Most such changes are those of a status by the object's own controller.
        let is_status = write.subresource.as_deref() == Some("status");
        for state in [&mut before, &mut after] {
            if let Value::Object(members) = state {
                members.retain(|name, _| (name == "status") == is_status);
            }
        }
    }
    (before, after)
}

/// Keeps messages of conditions that differ by remarks alone: the operator that runs remembers with
/// whom it fights for fields, and the copy that plans does not.
fn with_equal_remarks(before: &Value, mut after: Value) -> Value {
    let conditions = after.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    let Some(conditions) = conditions else { return after };
    let stored = before["status"]["conditions"].as_array().into_iter().flatten();
    let stored: BTreeMap<&str, &str> =
        stored.filter_map(|one| Some((one["type"].as_str()?, one["message"].as_str()?))).collect();
    for condition in conditions {
        let held = condition["type"].as_str().and_then(|type_| stored.get(type_));
        if let (Some(held), Some(planned)) = (held, condition["message"].as_str())
            && without_fights(held) == without_fights(planned)
        {
            condition["message"] = Value::from(*held);
        }
    }
    after
}

/// Whether an object is marked for deletion.
fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn version(object: &Value) -> Option<&str> {
    object["metadata"]["resourceVersion"].as_str()
}

fn is_masked(write: &DryRunResponse) -> bool {
    is_confidential(&write.group, &write.resource)
}

/// Returns JSON; an empty object for anything else.
fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|_| Value::Object(Map::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_that_differs_by_a_fight_is_no_change_and_other_messages_are() {
        let status = |message: &str| {
            let ready = json!({"type": "Ready", "status": "True", "message": message});
            json!({"status": {"conditions": [ready]}})
        };
        let fight = "others change map again and again: .b";
        for (stored, planned, expected) in [
            (fight, "", fight),
            ("two of three; others change map again and again: .b", "two of three", fight),
            (fight, "waits", "waits"),
        ] {
            let after = with_equal_remarks(&status(stored), status(planned));
            let message = after["status"]["conditions"][0]["message"].as_str().unwrap();
            assert!(message.ends_with(expected), "{stored:?}, {planned:?}: {message:?}");
        }
        assert_eq!(with_equal_remarks(&json!({}), status("new")), status("new"));
        let bare = json!({"spec": {}});
        assert_eq!(with_equal_remarks(&bare, bare.clone()), bare, "no status appears");
    }
}
