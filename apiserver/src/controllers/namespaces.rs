//! Life cycle of namespaces: their initial content, and the deletion of their content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::changes::ChangedObject;
use super::{Controller, ControllerSet};
use crate::core::ServerCore;
use crate::kinds::{Kind, defaults, meta};
use crate::storage;
use crate::verbs::options::{DeleteOptions, Propagation};
use crate::verbs::update::{self, NextState};
use crate::verbs::{VerbCall, bootstrap, delete};

const NAMESPACES: &str = "namespaces";
/// Service account that every namespace has.
const ACCOUNT: &str = "default";
/// ConfigMap with the authority's certificate, which every namespace has.
const ROOT_CA: &str = "kube-root-ca.crt";

/// Controllers of namespaces: their deletion, and the objects that each namespace has.
#[derive(Debug)]
pub(super) struct Namespaces {
    /// The controllers that run.
    set: ControllerSet,
    /// Namespaces with work that is due.
    dirty: BTreeSet<String>,
    /// Namespaces that are being deleted: each change of their content is due work.
    terminating: BTreeSet<String>,
}

impl Namespaces {
    /// Returns controllers that have seen nothing yet.
    pub(super) fn new(set: ControllerSet) -> Self {
        Self { set, dirty: BTreeSet::new(), terminating: BTreeSet::new() }
    }

    /// Notes the namespace that a change concerns.
    pub(super) fn observe(&mut self, event: &ChangedObject) {
        let object = event.object();
        let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
        if event.kind.is("", NAMESPACES) {
            let going = event.after.as_ref().is_some_and(|after| meta::terminating(&after.value));
            match (&event.after, going) {
                // The namespace is gone: changes of leftovers need no work.
                (None, _) => drop(self.terminating.remove(name)),
                (Some(_), true) => drop(self.terminating.insert(name.to_owned())),
                (Some(_), false) => {}
            }
            let new = event.before.is_none();
            if going || new {
                self.dirty.insert(name.to_owned());
            }
        } else if self.terminating.contains(namespace) || lost_default(event, name) {
            self.dirty.insert(namespace.to_owned());
        }
    }

    /// Works on a namespace; returns whether any was queued.
    pub(super) fn work(&mut self, core: &ServerCore) -> bool {
        let Some(name) = self.dirty.pop_first() else { return false };
        // Gone since the note: nothing is left to do.
        let Some(held) = core.store.get(NAMESPACES, &name) else { return true };
        if !meta::terminating(&held.value) {
            furnish(core, self.set, &name);
        } else if self.set.has(Controller::Namespaces) {
            empty(core, &name, &held.value);
        }
        true
    }
}

/// Whether an object was deleted that every namespace must have.
fn lost_default(event: &ChangedObject, name: &str) -> bool {
    let account = event.kind.is("", "serviceaccounts") && name == ACCOUNT;
    let root = event.kind.is("", "configmaps") && name == ROOT_CA;
    event.after.is_none() && (account || root)
}

/// Creates the objects that every namespace has.
fn furnish(core: &ServerCore, set: ControllerSet, namespace: &str) {
    let missing = |storage: &str, name: &str| {
        core.store.get(storage, &storage::key(namespace, name)).is_none()
    };
    if set.has(Controller::Accounts) && missing("serviceaccounts", ACCOUNT) {
        bootstrap::seed(
            core,
            "",
            "serviceaccounts",
            namespace,
            json!({"metadata": {"name": ACCOUNT}}),
        );
    }
    if set.has(Controller::RootCertificate) && missing("configmaps", ROOT_CA) {
        let text = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
        let object = json!({
            "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": text}},
            "data": {"ca.crt": *core.root_ca.lock()},
        });
        bootstrap::seed(core, "", "configmaps", namespace, object);
    }
}

/// Writes the authority's certificate to every namespace, present and future.
pub(super) fn publish_root(core: &ServerCore, certificate: &str) {
    // Stored first: a namespace that is created meanwhile gets the new certificate.
    certificate.clone_into(&mut core.root_ca.lock());
    let Some(kind) = core.kind("", "configmaps") else { return };
    let (namespaces, _) = core.store.snapshot(NAMESPACES);
    for (namespace, _) in &namespaces {
        if let Some(call) = super::call(core, &kind, namespace, ROOT_CA) {
            change(core, &call, |map| defaults::child(map, "data")["ca.crt"] = json!(certificate));
        }
    }
}

/// Objects that remain in a terminating namespace.
#[derive(Debug, Default)]
struct RemainingObjects {
    /// Number of objects by resource.
    objects: BTreeMap<String, usize>,
    /// Number of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
}

/// Deletes the content of a namespace, then removes the finalizer of the namespace.
fn empty(core: &ServerCore, name: &str, held: &Value) {
    let mut left = RemainingObjects::default();
    // Each time over all kinds: an object may have been created between two rounds.
    for kind in core.registry.table().stored() {
        if kind.served.namespaced {
            empty_of(core, &kind, name, &mut left);
        }
    }
    let Some(kind) = core.kind("", NAMESPACES) else { return };
    let Some(mut call) = super::call(core, &kind, "", name) else { return };
    // Through the subresource, as only that may change the finalizers of a namespace.
    if left.objects.is_empty() {
        "finalize".clone_into(&mut call.subresource);
        change(core, &call, |namespace| {
            let mut finalizers =
                namespace["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
            finalizers.retain(|one| one != "kubernetes");
            defaults::child(namespace, "spec")["finalizers"] = json!(finalizers);
        });
    } else {
        let conditions = conditions(&left, held, &core.clock.rfc3339());
        "status".clone_into(&mut call.subresource);
        change(core, &call, |namespace| {
            defaults::child(namespace, "status")["conditions"] = conditions.clone();
        });
    }
}

/// Changes an object; a failure is logged.
fn change(core: &ServerCore, call: &VerbCall, make: impl Fn(&mut Value)) {
    let changed = update::change(core, call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        make(&mut next);
        Ok(NextState::Update(next))
    });
    if let Err(error) = changed {
        tracing::debug!(name = call.name, %error, "could not change an object about a namespace");
    }
}

/// Deletes the objects of a kind and counts the remaining objects.
fn empty_of(core: &ServerCore, kind: &Arc<Kind>, namespace: &str, left: &mut RemainingObjects) {
    let (snapshot, _) = core.store.snapshot(&kind.storage);
    for (key, held) in storage::in_namespace(&snapshot, namespace) {
        // Deleted once: a terminating object already waits for finalizers or the grace period.
        if !meta::terminating(&held.value) {
            let name = meta::text(&held.value, "name");
            let Some(call) = super::call(core, kind, namespace, name) else { continue };
            let options = DeleteOptions {
                // In the background: owners and dependents are deleted in any order, since all of
                // them go.
                propagation: Some(Propagation::Background),
                ..DeleteOptions::default()
            };
            if let Err(error) = delete::delete(core, &call, &options, &mut Vec::new()) {
                tracing::debug!(namespace, name, %error, "could not delete an object of a terminating namespace");
            }
        }
        // Looked up again: the deletion may have left the object with finalizers.
        if let Some(stays) = core.store.get(&kind.storage, key) {
            *left.objects.entry(kind.served.group_resource()).or_default() += 1;
            for finalizer in meta::finalizers(&stays.value) {
                *left.finalizers.entry(finalizer).or_default() += 1;
            }
        }
    }
}

/// Returns the conditions that describe the state of a namespace's deletion.
fn conditions(left: &RemainingObjects, held: &Value, now: &str) -> Value {
    let list = |counts: &BTreeMap<String, usize>, word: &str| {
        let parts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {word} {count} resource instances"))
            .collect();
        parts.join(", ")
    };
    let remaining = format!("Some resources are remaining: {}", list(&left.objects, "has"));
    let finalizers = format!(
        "Some content in the namespace has finalizers remaining: {}",
        list(&left.finalizers, "in")
    );
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", "True", "SomeResourcesRemain", remaining.as_str()),
        match left.finalizers.is_empty() {
            true => (
                "NamespaceFinalizersRemaining",
                "False",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
            false => (
                "NamespaceFinalizersRemaining",
                "True",
                "SomeFinalizersRemain",
                finalizers.as_str(),
            ),
        },
    ];
    let conditions = rows.into_iter().map(|(kind, status, reason, message)| {
        let before = held["status"]["conditions"].as_array().into_iter().flatten();
        // The time of a condition changes only with the status.
        let before = before.clone().find(|one| one["type"] == kind && one["status"] == status);
        let since = before.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    });
    Value::Array(conditions.collect())
}
