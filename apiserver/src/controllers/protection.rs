//! Protection of storage: releases claims, volumes and classes that are being deleted once nothing
//! uses them.
//!
//! Admission gives each object a finalizer. A claim is in use by Pods that have not ended, a volume
//! while bound, a class by claims and volumes that name the class.

use serde_json::Value;

use super::changes::ChangedObject;
use super::{Controller, ControllerSet};
use crate::core::ServerCore;
use crate::kinds::meta;
use crate::storage;
use crate::verbs::update::{self, NextState};

/// A protected kind: group, plural, finalizer and controller.
struct Protected {
    group: &'static str,
    plural: &'static str,
    finalizer: &'static str,
    controller: Controller,
}

const CLAIMS: Protected = Protected {
    group: "",
    plural: "persistentvolumeclaims",
    finalizer: "kubernetes.io/pvc-protection",
    controller: Controller::ClaimProtection,
};
const VOLUMES: Protected = Protected {
    group: "",
    plural: "persistentvolumes",
    finalizer: "kubernetes.io/pv-protection",
    controller: Controller::VolumeProtection,
};
const CLASSES: Protected = Protected {
    group: "storage.k8s.io",
    plural: "volumeattributesclasses",
    finalizer: "kubernetes.io/vac-protection",
    controller: Controller::ClassProtection,
};

/// Releases objects that a change has made unused.
pub(super) fn observe(core: &ServerCore, set: ControllerSet, event: &ChangedObject) {
    let release = |protected: &Protected, namespace: &str, name: &str| {
        if set.has(protected.controller) && !name.is_empty() {
            release(core, protected, namespace, name);
        }
    };
    let states = [&event.before, &event.after].into_iter().flatten();
    let (namespace, name) =
        (meta::text(event.object(), "namespace"), meta::text(event.object(), "name"));
    if event.kind.is("", "pods") {
        for claim in states.clone().flat_map(|pod| claims(&pod.value)) {
            release(&CLAIMS, namespace, claim);
        }
    } else if event.kind.is("", CLAIMS.plural) {
        release(&CLAIMS, namespace, name);
        states.clone().flat_map(|held| classes(&held.value)).for_each(|class| {
            release(&CLASSES, "", class);
        });
    } else if event.kind.is("", VOLUMES.plural) {
        release(&VOLUMES, "", name);
        states.flat_map(|held| classes(&held.value)).for_each(|class| release(&CLASSES, "", class));
    } else if event.kind.is(CLASSES.group, CLASSES.plural) {
        release(&CLASSES, "", name);
    }
}

/// Iterates over the names of the claims that a Pod mounts.
fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}

/// Iterates over the names of the classes that a claim or a volume uses.
fn classes(object: &Value) -> impl Iterator<Item = &str> {
    [
        &object["spec"]["volumeAttributesClassName"],
        &object["status"]["currentVolumeAttributesClassName"],
    ]
    .into_iter()
    .filter_map(Value::as_str)
}

/// Whether something uses an object.
fn is_used(core: &ServerCore, protected: &Protected, object: &Value) -> bool {
    let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
    let names_class = |resource: &str| {
        let (held, _) = core.store.snapshot(resource);
        held.iter().any(|(_, one)| classes(&one.value).any(|class| class == name))
    };
    match protected.controller {
        Controller::ClaimProtection => {
            let (pods, _) = core.store.snapshot("pods");
            storage::in_namespace(&pods, namespace).any(|(_, pod)| {
                let phase = &pod.value["status"]["phase"];
                let ended = phase == "Succeeded" || phase == "Failed";
                !ended && claims(&pod.value).any(|claim| claim == name)
            })
        }
        Controller::VolumeProtection => object["status"]["phase"] == "Bound",
        _ => names_class(CLAIMS.plural) || names_class(VOLUMES.plural),
    }
}

/// Removes the finalizer of an object that is being deleted and that nothing uses.
fn release(core: &ServerCore, protected: &Protected, namespace: &str, name: &str) {
    let Some(kind) = core.kind(protected.group, protected.plural) else { return };
    let held = core.store.get(&kind.storage, &storage::key(namespace, name));
    let is_free = held.is_some_and(|held| {
        meta::terminating(&held.value)
            && meta::finalizers(&held.value).iter().any(|one| one == protected.finalizer)
            && !is_used(core, protected, &held.value)
    });
    let Some(call) = super::call(core, &kind, namespace, name).filter(|_| is_free) else { return };
    let updated = update::change(core, &call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        let mut finalizers = meta::finalizers(&next);
        finalizers.retain(|one| one != protected.finalizer);
        meta::set(&mut next, "finalizers", finalizers.into());
        meta::clean(&mut next);
        Ok(NextState::Update(next))
    });
    if let Err(error) = updated {
        tracing::debug!(namespace, name, %error, "could not release an unused object");
    }
}
