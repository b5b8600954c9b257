//! Life cycle of `CustomResourceDefinition`s: names, serving and deletion.
//!
//! On a real cluster controllers do this a little later; here it happens within the write, so that
//! a definition is served once the POST is answered. Schemas are checked elsewhere.

// DESIGN.md, 112: Verbs of the API server stand above the life cycle of definitions

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::ServerCore;
use crate::kinds::{Kind, custom, meta};
use crate::storage::StoredObject;

/// Store resource of definitions.
pub(crate) const STORAGE: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Finalizer that holds a definition until all instances are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Adds the version in which objects are stored to the versions that have been.
pub(crate) fn note_storage(definition: &mut Value) {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let stored = versions.filter(|version| version["storage"] == true);
    let stored: Vec<Value> = stored.map(|version| version["name"].clone()).collect();
    let held = definition.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut);
    if let Some(held) = held {
        let new: Vec<Value> = stored.into_iter().filter(|name| !held.contains(name)).collect();
        held.extend(new);
    }
}

/// Returns the status of a definition whose names have not been checked yet.
pub(crate) fn initial_status(definition: &Value) -> Value {
    let stored = stored_version(definition);
    json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored.into_iter().collect::<Vec<_>>(),
    })
}

/// Returns the name of the version that is stored.
fn stored_version(definition: &Value) -> Option<String> {
    let versions = definition["spec"]["versions"].as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true)?;
    stored["name"].as_str().map(str::to_owned)
}

/// Marks a definition as being deleted, in a condition.
pub(crate) fn mark(definition: &mut Value, now: &str) {
    if !has_condition(definition, "Terminating", "True") {
        let text =
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        set_condition(definition, "Terminating", "True", "InstanceDeletionPending", text, now);
    }
}

/// Deletes all instances of a kind; finalizers may hold some of them.
///
/// A parameter of the life cycle, because the deletion is a verb: verbs stand above this module,
/// and the deletion of the last instance leads back to [`observe`].
pub(crate) type DeleteInstances = fn(&ServerCore, &Arc<Kind>);

/// Acts on a write of a definition (serves or withdraws the kind) or on the deletion of an
/// instance.
pub(crate) fn observe(
    core: &ServerCore,
    kind: &Kind,
    before: Option<&Arc<StoredObject>>,
    after: Option<&Arc<StoredObject>>,
    delete: DeleteInstances,
) {
    if kind.storage == STORAGE {
        match (before, after) {
            (_, Some(now)) => {
                settle(core, meta::text(&now.value, "name"), delete);
            }
            (Some(gone), None) => {
                unserve(core, &gone.value);
                retry_conflicts(core, delete);
            }
            (None, None) => {}
        }
    } else if let (Some(custom), None) = (&kind.custom, after) {
        // The last instance may have been the last obstacle to the definition's deletion.
        finish(core, &custom.definition, delete);
    }
}

/// Withdraws the kinds of a definition and ends their watches.
fn unserve(core: &ServerCore, definition: &Value) {
    let storage = custom::storage(definition);
    core.registry.replace(&storage, Vec::new());
    core.store.end(&storage);
}

/// Changes a definition and returns the stored object; `None` if the definition is gone.
fn change(core: &ServerCore, name: &str, make: impl Fn(&mut Value)) -> Option<Arc<StoredObject>> {
    // A concurrent write makes `put` fail: the change is then computed from the newer state.
    loop {
        let held = core.store.get(STORAGE, name)?;
        let mut next = held.value.clone();
        make(&mut next);
        // Nothing to write: a write without a change would still wake every watch.
        if next == held.value {
            return Some(held);
        }
        let next = track(core, &held.value, &next);
        if let Ok(stored) = core.store.put(STORAGE, name, Some(&held), next) {
            return Some(stored);
        }
    }
}

/// Records the server as manager of the status that it wrote.
fn track(core: &ServerCore, old: &Value, new: &Value) -> Value {
    let Some(kind) = core.kind("apiextensions.k8s.io", "customresourcedefinitions") else {
        return new.clone();
    };
    let (manager, now) = ("kube-apiserver", core.clock.rfc3339());
    let mut next = crate::apply::track_update(
        &kind.types,
        Some(old),
        new,
        manager,
        &kind.stored_as,
        Some("status"),
        &now,
    );
    // The list was there before the items, as a null: the list has no owner.
    let entries = next["metadata"]["managedFields"].as_array_mut().into_iter().flatten();
    for entry in entries.filter(|entry| entry["manager"] == manager) {
        let list = entry.pointer_mut("/fieldsV1/f:status/f:conditions");
        if let Some(Value::Object(list)) = list {
            list.remove(".");
        }
    }
    next
}

/// Accepts the names of a definition, establishes and serves it; continues a begun deletion.
fn settle(core: &ServerCore, name: &str, delete: DeleteInstances) {
    let Some(held) = core.store.get(STORAGE, name) else { return };
    if meta::terminating(&held.value) {
        terminate(core, name, delete);
        return;
    }
    let now = core.clock.rfc3339();
    let others = names_of_others(core, &held.value);
    let accepted = change(core, name, |definition| accept(definition, &others, &now));
    let Some(accepted) = accepted else { return };
    // Not served until the conflict is over.
    if !has_condition(&accepted.value, "NamesAccepted", "True") {
        return;
    }
    let established = change(core, name, |definition| {
        let text = "the initial names have been accepted";
        set_condition(definition, "Established", "True", "InitialNamesAccepted", text, &now);
    });
    if let Some(established) = established {
        serve(core, &established.value);
    }
}

/// Serves the kinds of a definition.
fn serve(core: &ServerCore, definition: &Value) {
    let storage = custom::storage(definition);
    let kinds = custom::kinds(definition);
    // The store first: a request that finds the kind must also find the resource served.
    core.store.serve(&storage, true);
    core.registry.replace(&storage, kinds);
}

/// Serves exactly the kinds of the stored definitions, after the whole state of the store has been
/// replaced; goes on with the begun work on each definition.
pub(crate) fn reload(core: &ServerCore, delete: DeleteInstances) {
    let (definitions, _) = core.store.snapshot(STORAGE);
    for kind in core.registry.table().stored() {
        let definition = kind.custom.as_ref().map(|custom| &custom.definition);
        if definition.is_some_and(|name| !definitions.contains_key(name.as_str())) {
            core.registry.replace(&kind.storage, Vec::new());
            core.store.end(&kind.storage);
        }
    }
    // Also those that are being deleted: their instances are served until they are gone.
    for (_, held) in &definitions {
        if has_condition(&held.value, "Established", "True") {
            serve(core, &held.value);
        }
    }
    for (name, _) in &definitions {
        settle(core, name, delete);
    }
}

/// Checks definitions with conflicting names again: a conflict may be over once another definition
/// is gone.
fn retry_conflicts(core: &ServerCore, delete: DeleteInstances) {
    let (definitions, _) = core.store.snapshot(STORAGE);
    for (name, held) in &definitions {
        if has_condition(&held.value, "NamesAccepted", "False") {
            settle(core, name, delete);
        }
    }
}

/// Names that other definitions of the group hold, and their kinds.
#[derive(Debug, Default)]
struct ReservedNames {
    plurals: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

/// Returns the accepted names of all other definitions of the group.
fn names_of_others(core: &ServerCore, definition: &Value) -> ReservedNames {
    let mut names = ReservedNames::default();
    let (definitions, _) = core.store.snapshot(STORAGE);
    for (_, other) in &definitions {
        let other = &other.value;
        let same = meta::text(other, "name") == meta::text(definition, "name");
        if same || other["spec"]["group"] != definition["spec"]["group"] {
            continue;
        }
        let held = &other["status"]["acceptedNames"];
        let words = ["plural", "singular"].map(|field| held[field].as_str());
        let short = held["shortNames"].as_array().into_iter().flatten().map(Value::as_str);
        names.plurals.extend(words.into_iter().chain(short).flatten().map(str::to_owned));
        let kinds = ["kind", "listKind"].map(|field| held[field].as_str());
        names.kinds.extend(kinds.into_iter().flatten().map(str::to_owned));
    }
    names
}

/// Writes the accepted names, the stored versions and the conditions about them.
fn accept(definition: &mut Value, others: &ReservedNames, now: &str) {
    let conflict = accept_names(definition, others);
    let mut stored: Vec<String> = texts(&definition["status"]["storedVersions"]);
    stored.extend(stored_version(definition).filter(|version| !stored.contains(version)));
    crate::kinds::defaults::child(definition, "status")["storedVersions"] = json!(stored);
    let (status, reason, text, waiting) = match &conflict {
        Some((reason, text)) => {
            ("False", *reason, text.as_str(), ("NotAccepted", "not all names are accepted"))
        }
        None => {
            let waiting = ("Installing", "the initial names have been accepted");
            ("True", "NoConflicts", "no conflicts found", waiting)
        }
    };
    set_condition(definition, "NamesAccepted", status, reason, text, now);
    if !has_condition(definition, "Established", "True") {
        set_condition(definition, "Established", "False", waiting.0, waiting.1, now);
    }
}

/// Accepts the names that no other definition holds, and returns the last conflict.
fn accept_names(definition: &mut Value, others: &ReservedNames) -> Option<(&'static str, String)> {
    let wanted = definition["spec"]["names"].clone();
    let mut accepted = definition["status"]["acceptedNames"].clone();
    let mut conflict = None;
    for (field, reason, taken) in [
        ("plural", "PluralConflict", &others.plurals),
        ("singular", "SingularConflict", &others.plurals),
        ("kind", "KindConflict", &others.kinds),
        ("listKind", "ListKindConflict", &others.kinds),
    ] {
        let name = wanted[field].as_str().unwrap_or_default();
        if taken.contains(name) {
            conflict = Some((reason, format!("{name:?} is already in use")));
        } else if !name.is_empty() {
            accepted[field] = json!(name);
        }
    }
    let short = wanted["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in short.filter(|name| others.plurals.contains(*name)) {
        conflict = Some(("ShortNamesConflict", format!("{name:?} is already in use")));
    }
    // Short names and categories are accepted only if no name conflicts.
    for field in ["shortNames", "categories"] {
        if wanted[field].is_array() && conflict.is_none() {
            accepted[field] = wanted[field].clone();
        }
    }
    crate::kinds::defaults::child(definition, "status")["acceptedNames"] = accepted;
    conflict
}

/// Returns the texts of a list.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Deletes the instances of a definition that is being deleted.
fn terminate(core: &ServerCore, name: &str, delete: DeleteInstances) {
    let now = core.clock.rfc3339();
    let Some(held) = core.store.get(STORAGE, name) else { return };
    if !meta::finalizers(&held.value).iter().any(|finalizer| finalizer == FINALIZER) {
        return;
    }
    let storage = custom::storage(&held.value);
    let kind = core.registry.table().stored().into_iter().find(|kind| kind.storage == storage);
    if let Some(kind) = kind {
        change(core, name, |definition| {
            let text = "CustomResource deletion is in progress";
            set_condition(
                definition,
                "Terminating",
                "True",
                "InstanceDeletionInProgress",
                text,
                &now,
            );
        });
        delete(core, &kind);
    }
    // Without instances there is no deletion that would call this.
    finish(core, name, delete);
}

/// Removes the finalizer of a definition that is being deleted, once no instance is left.
fn finish(core: &ServerCore, name: &str, delete: DeleteInstances) {
    let Some(held) = core.store.get(STORAGE, name) else { return };
    let waiting = meta::finalizers(&held.value).iter().any(|finalizer| finalizer == FINALIZER);
    let storage = custom::storage(&held.value);
    if !meta::terminating(&held.value) || !waiting || !core.store.snapshot(&storage).0.is_empty() {
        return;
    }
    let done = change(core, name, |definition| {
        let mut finalizers = meta::finalizers(definition);
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        meta::set(definition, "finalizers", json!(finalizers));
        meta::clean(definition);
    });
    if let Some(done) = done.filter(|done| meta::finalizers(&done.value).is_empty())
        // A concurrent change of the definition leads here again.
        && core.store.remove(STORAGE, name, &done).is_ok()
    {
        unserve(core, &done.value);
        retry_conflicts(core, delete);
    }
}

/// Whether a definition has a condition with this status.
fn has_condition(definition: &Value, kind: &str, status: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == status)
}

/// Sets a condition. The transition time changes only with the status.
fn set_condition(
    definition: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let conditions = &mut crate::kinds::defaults::child(definition, "status")["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(list) = conditions else { return };
    let mut fresh = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now,
    });
    if let Some(held) = list.iter_mut().find(|one| one["type"] == kind) {
        if held["status"] == status {
            fresh["lastTransitionTime"] = held["lastTransitionTime"].clone();
        }
        *held = fresh;
    } else {
        list.push(fresh);
    }
}
