//! Garbage collection by owner references.
//!
//! An object whose owners are all gone is deleted; one that lost only some forgets those. Owners that
//! are deleted in the foreground wait for the dependents that block them; those that orphan let their
//! dependents go first. An owner that exists under the same name with another uid is gone, and one in
//! another namespace cannot be an owner.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::changes::Event;
use super::collect;
use crate::core::Core;
use crate::kinds::{Kind, meta};
use crate::storage::{self, Object};

/// Finalizer of an owner that lets its dependents live on.
pub(super) const ORPHAN: &str = "orphan";

/// Finalizer of an owner that outlives the dependents that block it.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// One owner reference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owner {
    /// Uid of the owner.
    pub(super) uid: String,
    /// Its API group.
    pub(super) group: String,
    /// Its kind.
    pub(super) kind: String,
    /// Its name.
    pub(super) name: String,
    /// Must the dependent go first when the owner is deleted in the foreground?
    pub(super) blocks: bool,
}

/// An object that has owners.
#[derive(Clone, Debug)]
pub(super) struct Dependent {
    /// Its kind.
    pub(super) kind: Arc<Kind>,
    /// Its namespace, may be empty.
    pub(super) namespace: String,
    /// Its name.
    pub(super) name: String,
    /// Its owners.
    pub(super) owners: Vec<Owner>,
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// Has this object (by uid) still an owner?
    Dependent(String),
    /// What does this owner (group, kind, namespace, name) wait for?
    Owner(String, String, String, String),
}

/// Who owns whom, and what to look at next.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    dependents: BTreeMap<String, Dependent>,
    owned: BTreeMap<String, BTreeSet<String>>,
    /// Owners that were seen to go and still have dependents.
    absent: BTreeSet<String>,
    queue: VecDeque<Work>,
    queued: BTreeSet<Work>,
}

impl Dependent {
    /// The object, if it is still the one with this uid.
    pub(super) fn get(&self, core: &Core, uid: &str) -> Option<Arc<Object>> {
        let key = storage::key(&self.namespace, &self.name);
        let held = core.store.get(&self.kind.storage, &key)?;
        (meta::text(&held.value, "uid") == uid).then_some(held)
    }
}

/// The owner references of an object.
fn owners(object: &Value) -> Vec<Owner> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let references = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    references
        .map(|one| {
            let version = one["apiVersion"].as_str().unwrap_or_default();
            Owner {
                uid: text(&one["uid"]),
                group: version.split_once('/').map_or("", |(group, _)| group).to_owned(),
                kind: text(&one["kind"]),
                name: text(&one["name"]),
                blocks: one["blockOwnerDeletion"] == true,
            }
        })
        .collect()
}

/// Is the object being deleted, and held by this finalizer?
pub(super) fn waits(object: &Value, finalizer: &str) -> bool {
    meta::terminating(object) && meta::finalizers(object).iter().any(|name| name == finalizer)
}

impl Garbage {
    /// Learns from a change who owns whom.
    pub(super) fn observe(&mut self, event: &Event) {
        let object = event.object();
        let uid = meta::text(object, "uid");
        let Some(after) = &event.after else {
            self.forget(uid);
            if self.owned.contains_key(uid) {
                self.absent.insert(uid.to_owned());
                self.push_dependents(uid);
            }
            return;
        };
        self.learn(uid, &event.kind, &after.value);
        if waits(&after.value, ORPHAN) || waits(&after.value, FOREGROUND) {
            let served = &event.kind.served;
            let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
            self.push(Work::Owner(
                served.group.clone(),
                served.kind.clone(),
                namespace.to_owned(),
                name.to_owned(),
            ));
        }
    }

    fn learn(&mut self, uid: &str, kind: &Arc<Kind>, object: &Value) {
        let owners = owners(object);
        match self.dependents.get(uid) {
            Some(known) if known.owners == owners => return,
            None if owners.is_empty() => return,
            _ => self.forget(uid),
        }
        if owners.is_empty() {
            return;
        }
        for owner in &owners {
            self.owned.entry(owner.uid.clone()).or_default().insert(uid.to_owned());
        }
        let dependent = Dependent {
            kind: kind.clone(),
            namespace: meta::text(object, "namespace").to_owned(),
            name: meta::text(object, "name").to_owned(),
            owners,
        };
        self.dependents.insert(uid.to_owned(), dependent);
        self.push(Work::Dependent(uid.to_owned()));
    }

    /// Forgets a dependent; its owners may have waited for that.
    fn forget(&mut self, uid: &str) {
        let Some(gone) = self.dependents.remove(uid) else { return };
        for owner in gone.owners {
            if let Some(owned) = self.owned.get_mut(&owner.uid) {
                owned.remove(uid);
                if owned.is_empty() {
                    self.owned.remove(&owner.uid);
                    self.absent.remove(&owner.uid);
                }
            }
            self.push(Work::Owner(owner.group, owner.kind, gone.namespace.clone(), owner.name));
        }
    }

    fn push(&mut self, work: Work) {
        if self.queued.insert(work.clone()) {
            self.queue.push_back(work);
        }
    }

    fn push_dependents(&mut self, owner: &str) {
        for uid in self.owned.get(owner).cloned().unwrap_or_default() {
            self.push(Work::Dependent(uid));
        }
    }

    /// The dependents of an owner, by uid.
    pub(super) fn of(&self, owner: &str) -> Vec<(&str, &Dependent)> {
        let uids = self.owned.get(owner).into_iter().flatten();
        uids.filter_map(|uid| Some((uid.as_str(), self.dependents.get(uid)?))).collect()
    }

    /// Looks at one thing; was there one to look at?
    pub(super) fn work(&mut self, core: &Core) -> bool {
        let Some(work) = self.queue.pop_front() else { return false };
        self.queued.remove(&work);
        match work {
            Work::Dependent(uid) => {
                if let Some(dependent) = self.dependents.get(&uid) {
                    let has_dependents = self.owned.contains_key(&uid);
                    collect::dependent(core, &uid, dependent, has_dependents, &self.absent);
                }
            }
            Work::Owner(group, kind, namespace, name) => {
                let Some(kind) = core.registry.table().by_kind(&group, &kind) else { return true };
                let namespace = if kind.served.namespaced { namespace } else { String::new() };
                let Some(held) = core.store.get(&kind.storage, &storage::key(&namespace, &name))
                else {
                    return true;
                };
                let uid = meta::text(&held.value, "uid").to_owned();
                if waits(&held.value, ORPHAN) {
                    collect::orphan(core, &kind, &held.value, &self.of(&uid));
                } else if waits(&held.value, FOREGROUND) {
                    collect::foreground(core, &kind, &held.value, &self.of(&uid));
                    self.push_dependents(&uid);
                }
            }
        }
        true
    }
}
