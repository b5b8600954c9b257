//! Stand-ins for the controllers of workloads, for Endpoints and volumes, and for a kubelet.
//!
//! They write what kube-controller-manager writes, without nodes: the stand-in for a kubelet lets Pods
//! run. Each object that may need work has a key in one queue; a key is worked off from what is stored
//! then, so events only say where to look.

// DESIGN.md, 149: Stand-ins work off keys from what is stored

mod cronjobs;
mod daemonsets;
mod deployments;
mod disruption;
mod endpoints;
mod jobs;
mod kubelet;
mod objects;
mod pods;
mod replicasets;
mod revisions;
mod schedule;
mod signing;
mod statefulsets;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::changes::Event;
use super::selection::{Controller, ControllerSet};
use crate::core::Core;
use crate::kinds::meta;
use objects::{Resource, controller_of};

/// Seconds until work that failed is tried again.
const RETRY: i64 = 5;

/// One object that a controller has to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    controller: Controller,
    namespace: String,
    name: String,
}

/// The result of work on a key: the time at which to look again, in seconds since 1970.
type Done = Result<Option<i64>, crate::status::ApiError>;

/// State of the stand-ins.
#[derive(Debug)]
pub(super) struct Workloads {
    set: ControllerSet,
    /// Keys that are to be worked off.
    queue: BTreeSet<Key>,
    /// Keys that are to be looked at later, with the time in seconds since 1970.
    later: BTreeMap<Key, i64>,
    /// The same in the order of the times.
    times: BTreeSet<(i64, Key)>,
}

impl Workloads {
    pub(super) fn new(set: ControllerSet) -> Self {
        Self { set, queue: BTreeSet::new(), later: BTreeMap::new(), times: BTreeSet::new() }
    }

    /// Makes what the stand-ins need before the first object.
    pub(super) fn begin(&mut self, core: &Core) {
        if self.set.has(Controller::Kubelet) {
            kubelet::register(core);
            // Without a namespace the key is that of the node.
            self.add(Controller::Kubelet, "", kubelet::NODE);
        }
    }

    /// Queues the keys that an event concerns.
    pub(super) fn observe(&mut self, core: &Core, event: &Event) {
        if !self.set.has_stand_ins() {
            return;
        }
        let kind = &event.kind.served;
        let object = event.object();
        let (namespace, name) = (meta::text(object, "namespace"), meta::text(object, "name"));
        for controller in controllers_of(&kind.group, &kind.plural) {
            self.add(*controller, namespace, name);
        }
        for state in [&event.before, &event.after].into_iter().flatten() {
            self.add_owner(&state.value, namespace);
        }
        if kind.group.is_empty() && kind.plural == "pods" && self.set.has(Controller::Disruption) {
            let states = [&event.before, &event.after].into_iter().flatten();
            for budget in disruption::budgets_of(core, namespace, states) {
                self.add(Controller::Disruption, namespace, &budget);
            }
        }
        match (kind.group.as_str(), kind.plural.as_str()) {
            ("", "pods") if self.set.has_endpoints() => {
                let states = [&event.before, &event.after].into_iter().flatten();
                for service in endpoints::services_of(core, namespace, states) {
                    self.add(Controller::Endpoints, namespace, &service);
                    self.add(Controller::EndpointSlices, namespace, &service);
                }
            }
            ("", "nodes") => {
                self.add_all(core, Controller::DaemonSets, objects::DAEMONSETS);
                self.add_all(core, Controller::Kubelet, objects::PODS);
            }
            ("", "persistentvolumes") => {
                self.add_all(core, Controller::Volumes, objects::CLAIMS);
            }
            _ => {}
        }
    }

    /// Queues the owner of an object.
    fn add_owner(&mut self, object: &Value, namespace: &str) {
        let Some(owner) = controller_of(object) else { return };
        let controller = match owner["kind"].as_str().unwrap_or_default() {
            "ReplicaSet" => Controller::ReplicaSets,
            "Deployment" => Controller::Deployments,
            "StatefulSet" => Controller::StatefulSets,
            "DaemonSet" => Controller::DaemonSets,
            "Job" => Controller::Jobs,
            "CronJob" => Controller::CronJobs,
            _ => return,
        };
        self.add(controller, namespace, owner["name"].as_str().unwrap_or_default());
    }

    /// Queues all objects of a resource.
    fn add_all(&mut self, core: &Core, controller: Controller, resource: Resource) {
        if self.set.has(controller) {
            for held in objects::list(core, resource, "") {
                let namespace = meta::text(&held.value, "namespace");
                self.add(controller, namespace, meta::text(&held.value, "name"));
            }
        }
    }

    /// Queues a key, if its controller runs.
    fn add(&mut self, controller: Controller, namespace: &str, name: &str) {
        // Without ReplicaSets there are no Pods to count: Deployments are reported available.
        let needed = controller == Controller::Deployments;
        if self.set.has(controller) && (!needed || self.set.has(Controller::ReplicaSets)) {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            self.queue.insert(Key { controller, namespace, name });
        }
    }

    /// Returns the time of the next look, in seconds since 1970.
    pub(super) fn due(&self) -> Option<i64> {
        self.times.first().map(|(at, _)| *at)
    }

    /// Works off one key; returns whether there was one.
    pub(super) fn work(&mut self, core: &Core) -> bool {
        let now = core.clock.seconds();
        while let Some((_, key)) = self.times.first().filter(|(at, _)| *at <= now).cloned() {
            self.forget(&key);
            self.queue.insert(key);
        }
        // Removed first: a panic must not leave the key in the queue.
        let Some(key) = self.queue.pop_first() else { return false };
        self.forget(&key);
        let again = sync(core, &key).unwrap_or_else(|error| {
            let Key { controller, namespace, name } = &key;
            tracing::debug!(?controller, namespace, name, %error, "a stand-in could not do its work");
            Some(now + RETRY)
        });
        if let Some(at) = again {
            let at = at.max(now + 1);
            self.times.insert((at, key.clone()));
            self.later.insert(key, at);
        }
        true
    }

    /// Forgets the time of a key.
    fn forget(&mut self, key: &Key) {
        if let Some(at) = self.later.remove(key) {
            self.times.remove(&(at, key.clone()));
        }
    }
}

/// Returns the controllers of objects of a resource.
fn controllers_of(group: &str, plural: &str) -> &'static [Controller] {
    match (group, plural) {
        ("apps", "deployments") => &[Controller::Deployments],
        ("apps", "replicasets") => &[Controller::ReplicaSets],
        ("apps", "statefulsets") => &[Controller::StatefulSets],
        ("apps", "daemonsets") => &[Controller::DaemonSets],
        ("batch", "jobs") => &[Controller::Jobs],
        ("batch", "cronjobs") => &[Controller::CronJobs],
        ("", "services") => &[Controller::Endpoints, Controller::EndpointSlices],
        ("", "persistentvolumeclaims") => &[Controller::Volumes],
        ("", "pods") => &[Controller::Kubelet],
        ("certificates.k8s.io", "certificatesigningrequests") => &[Controller::Signing],
        ("policy", "poddisruptionbudgets") => &[Controller::Disruption],
        _ => &[],
    }
}

/// Works off a key.
fn sync(core: &Core, key: &Key) -> Done {
    let Key { controller, namespace, name } = key;
    match controller {
        Controller::Deployments => deployments::sync(core, namespace, name),
        Controller::ReplicaSets => replicasets::sync(core, namespace, name),
        Controller::StatefulSets => statefulsets::sync(core, namespace, name),
        Controller::DaemonSets => daemonsets::sync(core, namespace, name),
        Controller::Jobs => jobs::sync(core, namespace, name),
        Controller::CronJobs => cronjobs::sync(core, namespace, name),
        Controller::Endpoints => endpoints::sync_endpoints(core, namespace, name),
        Controller::EndpointSlices => endpoints::sync_slice(core, namespace, name),
        Controller::Volumes => volumes::sync(core, namespace, name),
        Controller::Disruption => disruption::sync(core, namespace, name),
        Controller::Signing => signing::sync(core, name),
        Controller::Kubelet => kubelet::sync(core, namespace, name),
        _ => Ok(None),
    }
}
