//! Garbage collection by owner references.
//!
//! An object whose owners are all gone is deleted; an object that lost only some of them loses
//! those references. Owners that are deleted in the foreground wait for the dependents that block
//! them; the dependents of owners that orphan lose their references first. An owner that exists
//! under the same name with another uid is gone, and an object in another namespace cannot be an
//! owner.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::changes::ChangedObject;
use super::collect;
use crate::core::ServerCore;
use crate::kinds::{Kind, meta};
use crate::storage::{self, StoredObject};

/// Finalizer of an owner whose dependents are kept.
pub(super) const ORPHAN: &str = "orphan";

/// Finalizer of an owner that waits for the dependents that block the deletion.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// An owner reference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owner {
    /// Uid of the owner.
    pub(super) uid: String,
    /// API group of the owner.
    pub(super) group: String,
    /// Kind of the owner.
    pub(super) kind: String,
    /// Name of the owner.
    pub(super) name: String,
    /// Whether a foreground deletion of the owner waits for this dependent.
    pub(super) blocks: bool,
}

/// An object with owners.
#[derive(Clone, Debug)]
pub(super) struct Dependent {
    /// Kind of the object.
    pub(super) kind: Arc<Kind>,
    /// Namespace of the object; may be empty.
    pub(super) namespace: String,
    /// Name of the object.
    pub(super) name: String,
    /// Owners of the object.
    pub(super) owners: Vec<Owner>,
}

/// A check that is due.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GarbageCheck {
    /// Check whether this object (by uid) still has an owner.
    Dependent(String),
    /// Check whether this owner (group, kind, namespace, name) still has to wait.
    Owner(String, String, String, String),
}

/// Graph of owners and dependents, and the queue of checks that are due.
#[derive(Debug, Default)]
pub(super) struct Garbage {
    /// Dependents by uid.
    dependents: BTreeMap<String, Dependent>,
    /// Uids of the dependents by uid of the owner.
    owned: BTreeMap<String, BTreeSet<String>>,
    /// Owners that were seen to go and that still have dependents.
    absent: BTreeSet<String>,
    queue: VecDeque<GarbageCheck>,
    /// The contents of `queue`, so that each check is queued once.
    queued: BTreeSet<GarbageCheck>,
    /// Revision up to which every change has been observed.
    known: u64,
}

impl Dependent {
    /// Returns the object, if the uid is still this one.
    pub(super) fn get(&self, core: &ServerCore, uid: &str) -> Option<Arc<StoredObject>> {
        let key = storage::key(&self.namespace, &self.name);
        let held = core.store.get(&self.kind.storage, &key)?;
        (meta::text(&held.value, "uid") == uid).then_some(held)
    }
}

/// Returns the owner references of an object.
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

/// Whether the object is being deleted and held by this finalizer.
pub(super) fn waits(object: &Value, finalizer: &str) -> bool {
    meta::terminating(object) && meta::finalizers(object).iter().any(|name| name == finalizer)
}

impl Garbage {
    /// Updates the graph with a change, and queues the checks that become due.
    pub(super) fn observe(&mut self, event: &ChangedObject) {
        let object = event.object();
        let uid = meta::text(object, "uid");
        let Some(after) = &event.after else {
            self.forget(uid);
            // Noted as absent: the owner can no longer be looked up by uid.
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
            self.push(GarbageCheck::Owner(
                served.group.clone(),
                served.kind.clone(),
                namespace.to_owned(),
                name.to_owned(),
            ));
        }
    }

    /// Notes that every change up to a revision has been observed.
    pub(super) fn caught_up(&mut self, revision: u64) {
        self.known = revision;
    }

    /// Enters an object's owners, and queues its check if they changed.
    fn learn(&mut self, uid: &str, kind: &Arc<Kind>, object: &Value) {
        let owners = owners(object);
        match self.dependents.get(uid) {
            // Nothing to check: only the rest of the object has changed.
            Some(known) if known.owners == owners => return,
            // Most objects have no owners and are not entered at all.
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
        self.push(GarbageCheck::Dependent(uid.to_owned()));
    }

    /// Removes a dependent, and queues the owners, which may have waited for that.
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
            self.push(GarbageCheck::Owner(
                owner.group,
                owner.kind,
                gone.namespace.clone(),
                owner.name,
            ));
        }
    }

    /// Queues a check, unless already queued.
    fn push(&mut self, work: GarbageCheck) {
        // A check that is already queued will see this change as well.
        if self.queued.insert(work.clone()) {
            self.queue.push_back(work);
        }
    }

    /// Queues the checks of all dependents of an owner.
    fn push_dependents(&mut self, owner: &str) {
        for uid in self.owned.get(owner).cloned().unwrap_or_default() {
            self.push(GarbageCheck::Dependent(uid));
        }
    }

    /// Returns the dependents of an owner, by uid.
    pub(super) fn of(&self, owner: &str) -> Vec<(&str, &Dependent)> {
        let uids = self.owned.get(owner).into_iter().flatten();
        uids.filter_map(|uid| Some((uid.as_str(), self.dependents.get(uid)?))).collect()
    }

    /// Makes a check; returns whether any was queued.
    pub(super) fn work(&mut self, core: &ServerCore) -> bool {
        let Some(work) = self.queue.pop_front() else { return false };
        // Taken out before the work: a change that the work makes may queue the same check again.
        self.queued.remove(&work);
        match work {
            GarbageCheck::Dependent(uid) => {
                if let Some(dependent) = self.dependents.get(&uid) {
                    if dependent.get(core, &uid).is_some_and(|held| held.revision > self.known) {
                        self.push(GarbageCheck::Dependent(uid));
                        return true;
                    }
                    let has_dependents = self.owned.contains_key(&uid);
                    collect::dependent(core, &uid, dependent, has_dependents, &self.absent);
                }
            }
            GarbageCheck::Owner(group, kind, namespace, name) => {
                let Some(kind) = core.registry.table().by_kind(&group, &kind) else { return true };
                let namespace = if kind.served.namespaced { namespace } else { String::new() };
                let Some(held) = core.store.get(&kind.storage, &storage::key(&namespace, &name))
                else {
                    return true;
                };
                // A dependent that is older than this state may not have been observed yet: such a
                // dependent would be left out, and then be deleted because the owner is gone.
                if held.revision > self.known {
                    self.push(GarbageCheck::Owner(
                        group,
                        kind.served.kind.clone(),
                        namespace,
                        name,
                    ));
                    return true;
                }
                let uid = meta::text(&held.value, "uid").to_owned();
                if waits(&held.value, ORPHAN) {
                    collect::orphan(core, &kind, &held.value, &self.of(&uid));
                } else if waits(&held.value, FOREGROUND) {
                    collect::foreground(core, &kind, &held.value, &self.of(&uid));
                    // Dependents that the owner waits for must be deleted, too.
                    self.push_dependents(&uid);
                }
            }
        }
        true
    }
}
