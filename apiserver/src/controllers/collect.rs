//! Garbage collection of an object.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::garbage::{Dependent, FOREGROUND, ORPHAN, Owner, waits};
use crate::core::ServerCore;
use crate::kinds::{Kind, meta};
use crate::storage;
use crate::verbs::delete;
use crate::verbs::options::{DeleteOptions, Propagation};
use crate::verbs::update::{self, NextState};

/// State of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The owner exists.
    Solid,
    /// The owner waits for the deletion of all dependents.
    Waiting,
    /// The owner is gone.
    Absent,
    /// The owner cannot be looked up.
    Unknown,
}

/// Looks up the state of an owner.
fn state(
    core: &ServerCore,
    dependent: &Dependent,
    owner: &Owner,
    absent: &BTreeSet<String>,
) -> State {
    // A deletion that was seen counts even when the kind can no longer be looked up.
    if absent.contains(&owner.uid) {
        return State::Absent;
    }
    let table = core.registry.table();
    let Some(kind) = table.by_kind(&owner.group, &owner.kind) else { return State::Unknown };
    let namespace = match (kind.served.namespaced, dependent.kind.served.namespaced) {
        (true, true) => dependent.namespace.as_str(),
        // A cluster-wide object cannot have an owner in a namespace.
        (true, false) => return State::Unknown,
        (false, _) => "",
    };
    let held = core.store.get(&kind.storage, &storage::key(namespace, &owner.name));
    // Another uid under the same name: that is a successor, and the owner is gone.
    match held.filter(|held| meta::text(&held.value, "uid") == owner.uid) {
        None => State::Absent,
        Some(held) if waits(&held.value, FOREGROUND) => State::Waiting,
        Some(_) => State::Solid,
    }
}

/// Deletes an object without owners, or removes references to owners that are gone; `absent` owners
/// are known to be deleted.
pub(super) fn dependent(
    core: &ServerCore,
    uid: &str,
    dependent: &Dependent,
    has_dependents: bool,
    absent: &BTreeSet<String>,
) {
    let Some(held) = dependent.get(core, uid) else { return };
    // Deletion has begun; the finalizers decide the rest.
    if meta::terminating(&held.value) {
        return;
    }
    let owners = dependent.owners.iter();
    let states: Vec<(&Owner, State)> =
        owners.map(|owner| (owner, state(core, dependent, owner, absent))).collect();
    let any = |wanted: State| states.iter().any(|(_, state)| *state == wanted);
    // An owner that cannot be looked up may exist: nothing is decided.
    if any(State::Unknown) {
        return;
    }
    if any(State::Solid) {
        let gone: Vec<&str> = states
            .iter()
            .filter(|(_, state)| *state != State::Solid)
            .map(|(owner, _)| owner.uid.as_str())
            .collect();
        if !gone.is_empty() {
            forget_owners(core, dependent, uid, &gone);
        }
        return;
    }
    let finalizers = meta::finalizers(&held.value);
    let has = |name: &str| finalizers.iter().any(|held| held == name);
    let policy = match () {
        // The owners wait for the object, which in turn must wait for its own dependents.
        () if any(State::Waiting) && has_dependents => Propagation::Foreground,
        () if has(ORPHAN) => Propagation::Orphan,
        () if has(FOREGROUND) => Propagation::Foreground,
        () => Propagation::Background,
    };
    remove(core, dependent, uid, policy);
}

/// Deletes an object, if the uid is still this one.
fn remove(core: &ServerCore, dependent: &Dependent, uid: &str, policy: Propagation) {
    let (namespace, name) = (&dependent.namespace, &dependent.name);
    let Some(call) = super::call(core, &dependent.kind, namespace, name) else { return };
    let options = DeleteOptions {
        propagation: Some(policy),
        // A precondition: a successor of the same name must not be deleted.
        uid: Some(uid.to_owned()),
        ..DeleteOptions::default()
    };
    if let Err(error) = delete::delete(core, &call, &options, &mut Vec::new()) {
        tracing::debug!(namespace, name, %error, "could not delete an object without owners");
    }
}

/// Removes owner references by uid.
fn forget_owners(core: &ServerCore, dependent: &Dependent, uid: &str, gone: &[&str]) {
    change(core, &dependent.kind, &dependent.namespace, &dependent.name, uid, |object| {
        let references = object["metadata"]["ownerReferences"].as_array().cloned();
        let mut references = references.unwrap_or_default();
        references.retain(|one| !gone.iter().any(|uid| one["uid"] == **uid));
        meta::set(object, "ownerReferences", json!(references));
        meta::clean(object);
    });
}

/// Removes an owner from all dependents, then the finalizer from the owner.
pub(super) fn orphan(
    core: &ServerCore,
    kind: &Arc<Kind>,
    owner: &Value,
    dependents: &[(&str, &Dependent)],
) {
    let uid = meta::text(owner, "uid");
    for (dependent_uid, dependent) in dependents {
        forget_owners(core, dependent, dependent_uid, &[uid]);
    }
    release(core, kind, owner, ORPHAN);
}

/// Removes the finalizer of an owner once no dependent blocks it any more.
pub(super) fn foreground(
    core: &ServerCore,
    kind: &Arc<Kind>,
    owner: &Value,
    dependents: &[(&str, &Dependent)],
) {
    let uid = meta::text(owner, "uid");
    let blocked = dependents.iter().any(|(dependent_uid, dependent)| {
        let blocks = dependent.owners.iter().any(|one| one.uid == uid && one.blocks);
        blocks && dependent.get(core, dependent_uid).is_some()
    });
    if !blocked {
        release(core, kind, owner, FOREGROUND);
    }
}

/// Removes a finalizer from an object.
fn release(core: &ServerCore, kind: &Arc<Kind>, object: &Value, finalizer: &str) {
    let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
    change(core, kind, namespace, name, meta::text(object, "uid"), |object| {
        let mut finalizers = meta::finalizers(object);
        finalizers.retain(|one| one != finalizer);
        meta::set(object, "finalizers", json!(finalizers));
        meta::clean(object);
    });
}

/// Changes an object, if the uid is still the same; a failure is logged.
fn change(
    core: &ServerCore,
    kind: &Arc<Kind>,
    namespace: &str,
    name: &str,
    uid: &str,
    make: impl Fn(&mut Value),
) {
    let Some(call) = super::call(core, kind, namespace, name) else { return };
    let changed = update::change(core, &call, |held| {
        // A successor of the same name must not be changed.
        let held = held.filter(|held| meta::text(held, "uid") == uid);
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        make(&mut next);
        Ok(NextState::Update(next))
    });
    if let Err(error) = changed {
        tracing::debug!(namespace, name, %error, "garbage collection could not change an object");
    }
}
