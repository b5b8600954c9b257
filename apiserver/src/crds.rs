//! Life of `CustomResourceDefinition`s: what they make the server serve, and how they go.
//!
//! On a real cluster controllers do this a little later; here it happens within the write, so that a
//! definition is served once its POST is answered. Checking schemas is not done here.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::Core;
use crate::kinds::{Kind, custom, meta};
use crate::storage::Object;

/// Resource of definitions in the store.
pub(crate) const STORAGE: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Holds a definition until its instances are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The status of a definition nobody has looked at yet.
pub(crate) fn initial_status(definition: &Value) -> Value {
    let stored = stored_version(definition);
    json!({
        "conditions": null,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": stored.into_iter().collect::<Vec<_>>(),
    })
}

fn stored_version(definition: &Value) -> Option<String> {
    let versions = definition["spec"]["versions"].as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true)?;
    stored["name"].as_str().map(str::to_owned)
}

/// Marks a definition that is being deleted.
pub(crate) fn mark(definition: &mut Value, now: &str) {
    if !has_condition(definition, "Terminating", "True") {
        let text =
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        set_condition(definition, "Terminating", "True", "InstanceDeletionPending", text, now);
    }
}

/// Looks at a write: definitions and instances have consequences.
pub(crate) fn observe(
    core: &Core,
    kind: &Kind,
    before: Option<&Arc<Object>>,
    after: Option<&Arc<Object>>,
) {
    if kind.storage == STORAGE {
        match (before, after) {
            (_, Some(now)) => {
                crate::unevaluated::log(&now.value);
                settle(core, meta::text(&now.value, "name"));
            }
            (Some(gone), None) => {
                unserve(core, &gone.value);
                retry_conflicts(core);
            }
            (None, None) => {}
        }
    } else if let (Some(custom), None) = (&kind.custom, after) {
        finish(core, &custom.definition);
    }
}

fn unserve(core: &Core, definition: &Value) {
    let storage = custom::storage(definition);
    core.registry.replace(&storage, Vec::new());
    core.store.end(&storage);
}

/// Changes a definition; gives up quietly when it is gone.
fn change(core: &Core, name: &str, make: impl Fn(&mut Value)) -> Option<Arc<Object>> {
    loop {
        let held = core.store.get(STORAGE, name)?;
        let mut next = held.value.clone();
        make(&mut next);
        if next == held.value {
            return Some(held);
        }
        let next = track(core, &held.value, &next);
        if let Ok(stored) = core.store.put(STORAGE, name, Some(&held), next) {
            return Some(stored);
        }
    }
}

/// Notes that the server wrote a status.
fn track(core: &Core, old: &Value, new: &Value) -> Value {
    let Some(kind) = core.kind("apiextensions.k8s.io", "customresourcedefinitions") else {
        return new.clone();
    };
    let (manager, now) = ("kube-apiserver", core.clock.rfc3339());
    crate::apply::track_update(
        &kind.types,
        Some(old),
        new,
        manager,
        &kind.stored_as,
        Some("status"),
        &now,
    )
}

/// Accepts names, establishes and serves a definition, or moves its deletion on.
fn settle(core: &Core, name: &str) {
    let Some(held) = core.store.get(STORAGE, name) else { return };
    if meta::terminating(&held.value) {
        terminate(core, name);
        return;
    }
    let now = core.clock.rfc3339();
    let others = names_of_others(core, &held.value);
    let accepted = change(core, name, |definition| accept(definition, &others, &now));
    let Some(accepted) = accepted else { return };
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

fn serve(core: &Core, definition: &Value) {
    let storage = custom::storage(definition);
    let kinds = custom::kinds(definition);
    core.store.serve(&storage, true);
    core.registry.replace(&storage, kinds);
}

/// A conflict may be over once another definition is gone.
fn retry_conflicts(core: &Core) {
    let (definitions, _) = core.store.snapshot(STORAGE);
    for (name, held) in &definitions {
        if has_condition(&held.value, "NamesAccepted", "False") {
            settle(core, name);
        }
    }
}

/// Names that other definitions of the group hold, and their kinds.
#[derive(Debug, Default)]
struct Names {
    plurals: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

fn names_of_others(core: &Core, definition: &Value) -> Names {
    let mut names = Names::default();
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

/// Enters accepted names and the conditions about them.
fn accept(definition: &mut Value, others: &Names, now: &str) {
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

/// Accepts the names that nobody else holds; gives the last conflict.
fn accept_names(definition: &mut Value, others: &Names) -> Option<(&'static str, String)> {
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
    for field in ["shortNames", "categories"] {
        if wanted[field].is_array() && conflict.is_none() {
            accepted[field] = wanted[field].clone();
        }
    }
    crate::kinds::defaults::child(definition, "status")["acceptedNames"] = accepted;
    conflict
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Deletes the instances of a dying definition.
fn terminate(core: &Core, name: &str) {
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
        delete_instances(core, &kind);
    }
    finish(core, name);
}

fn delete_instances(core: &Core, kind: &Arc<Kind>) {
    let (snapshot, _) = core.store.snapshot(&kind.storage);
    for (_, held) in &snapshot {
        let place = (meta::text(&held.value, "namespace"), meta::text(&held.value, "name"));
        let Ok(mut call) = core.call(&kind.served.group, &kind.served.plural, place.0, place.1)
        else {
            continue;
        };
        call.kind = kind.clone();
        let options = crate::verbs::options::DeleteOptions::default();
        if let Err(error) = crate::verbs::delete::delete(core, &call, &options, &mut Vec::new()) {
            tracing::debug!(%error, "could not delete an instance of a dying definition");
        }
    }
}

/// Lets a dying definition go once no instance is left.
fn finish(core: &Core, name: &str) {
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
        && core.store.remove(STORAGE, name, &done).is_ok()
    {
        unserve(core, &done.value);
        retry_conflicts(core);
    }
}

fn has_condition(definition: &Value, kind: &str, status: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == status)
}

/// Sets a condition; its time changes only with its status.
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
