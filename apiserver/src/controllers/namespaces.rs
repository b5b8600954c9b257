//! Life of namespaces: what each one holds from the start, and how its content goes with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::changes::Event;
use crate::core::Core;
use crate::kinds::{Kind, defaults, meta};
use crate::storage;
use crate::verbs::options::{DeleteOptions, Propagation};
use crate::verbs::update::{self, Next};
use crate::verbs::{Call, delete};

const NAMESPACES: &str = "namespaces";
const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";

/// Namespaces that need looking at.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    dirty: BTreeSet<String>,
    terminating: BTreeSet<String>,
}

impl Namespaces {
    /// Notes which namespaces a change is about.
    pub(super) fn observe(&mut self, event: &Event) {
        let object = event.object();
        let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
        if event.kind.is("", NAMESPACES) {
            let going = event.after.as_ref().is_some_and(|after| meta::terminating(&after.value));
            match (&event.after, going) {
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

    /// Looks at one namespace; was there one to look at?
    pub(super) fn work(&mut self, core: &Core) -> bool {
        let Some(name) = self.dirty.pop_first() else { return false };
        let Some(held) = core.store.get(NAMESPACES, &name) else { return true };
        if meta::terminating(&held.value) {
            empty(core, &name, &held.value);
        } else {
            furnish(core, &name);
        }
        true
    }
}

fn lost_default(event: &Event, name: &str) -> bool {
    let account = event.kind.is("", "serviceaccounts") && name == ACCOUNT;
    let root = event.kind.is("", "configmaps") && name == ROOT_CA;
    event.after.is_none() && (account || root)
}

/// Creates what every namespace holds.
fn furnish(core: &Core, namespace: &str) {
    let missing = |storage: &str, name: &str| {
        core.store.get(storage, &storage::key(namespace, name)).is_none()
    };
    if missing("serviceaccounts", ACCOUNT) {
        core.seed("", "serviceaccounts", namespace, json!({"metadata": {"name": ACCOUNT}}));
    }
    if missing("configmaps", ROOT_CA) {
        let text = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";
        let object = json!({
            "metadata": {"name": ROOT_CA, "annotations": {"kubernetes.io/description": text}},
            "data": {"ca.crt": *core.root_ca.lock()},
        });
        core.seed("", "configmaps", namespace, object);
    }
}

/// Enters the authority's certificate in every namespace, now and later.
pub(super) fn publish_root(core: &Core, certificate: &str) {
    certificate.clone_into(&mut core.root_ca.lock());
    let Some(kind) = core.kind("", "configmaps") else { return };
    let (namespaces, _) = core.store.snapshot(NAMESPACES);
    for (namespace, _) in &namespaces {
        if let Some(call) = super::call(core, &kind, namespace, ROOT_CA) {
            change(core, &call, |map| defaults::child(map, "data")["ca.crt"] = json!(certificate));
        }
    }
}

/// What is left of a namespace's content.
#[derive(Debug, Default)]
struct Leftovers {
    /// How many objects of each resource.
    objects: BTreeMap<String, usize>,
    /// On how many objects each finalizer is.
    finalizers: BTreeMap<String, usize>,
}

/// Deletes the content of a namespace, then lets the namespace go.
fn empty(core: &Core, name: &str, held: &Value) {
    let mut left = Leftovers::default();
    for kind in core.registry.table().stored() {
        if kind.served.namespaced {
            empty_of(core, &kind, name, &mut left);
        }
    }
    let Some(kind) = core.kind("", NAMESPACES) else { return };
    let Some(mut call) = super::call(core, &kind, "", name) else { return };
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

fn change(core: &Core, call: &Call, make: impl Fn(&mut Value)) {
    let changed = update::change(core, call, |held| {
        let mut next = held.cloned().ok_or_else(|| call.not_found())?;
        make(&mut next);
        Ok(Next::Update(next))
    });
    if let Err(error) = changed {
        tracing::debug!(name = call.name, %error, "could not change an object about a namespace");
    }
}

/// Deletes the objects of one kind; counts those that stay.
fn empty_of(core: &Core, kind: &Arc<Kind>, namespace: &str, left: &mut Leftovers) {
    let (snapshot, _) = core.store.snapshot(&kind.storage);
    for (key, held) in storage::in_namespace(&snapshot, namespace) {
        if !meta::terminating(&held.value) {
            let name = meta::text(&held.value, "name");
            let Some(call) = super::call(core, kind, namespace, name) else { continue };
            let options = DeleteOptions {
                propagation: Some(Propagation::Background),
                ..DeleteOptions::default()
            };
            if let Err(error) = delete::delete(core, &call, &options, &mut Vec::new()) {
                tracing::debug!(namespace, name, %error, "could not delete an object of a terminating namespace");
            }
        }
        if let Some(stays) = core.store.get(&kind.storage, key) {
            *left.objects.entry(kind.served.group_resource()).or_default() += 1;
            for finalizer in meta::finalizers(&stays.value) {
                *left.finalizers.entry(finalizer).or_default() += 1;
            }
        }
    }
}

/// The conditions that say what a namespace waits for.
fn conditions(left: &Leftovers, held: &Value, now: &str) -> Value {
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
        let before = before.clone().find(|one| one["type"] == kind && one["status"] == status);
        let since = before.and_then(|one| one["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
    });
    Value::Array(conditions.collect())
}
