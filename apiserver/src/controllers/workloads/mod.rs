//! Stand-ins for the controllers of workloads, for Endpoints and volumes, and for a kubelet.
//!
//! The controllers write the same as kube-controller-manager, without nodes: the stand-in for a
//! kubelet lets Pods run. Each object that may need work has a key in a common queue; a key is
//! worked off from the state stored then, so events only name objects.

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
mod reconcile;
mod replicasets;
mod revisions;
mod schedule;
mod signing;
mod statefulsets;
#[cfg(test)]
mod tests;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::changes::ChangedObject;
use super::selection::{Controller, ControllerSet};
use crate::core::ServerCore;
use crate::hooks::WebhookSession;
use crate::kinds::meta;
use crate::verbs::suspend::run::RemainingWebhookCalls;
use objects::{Resource, controller_of};
use reconcile::{WebhookAnswers, WorkloadReconcile};

/// Seconds until work that failed is tried again; they double with each failure in a row.
const RETRY: i64 = 5;
/// Doublings of the time until work is tried again.
const DOUBLINGS: u32 = 6;
/// Most keys whose webhooks are asked at the same time; further keys wait.
const ASKED: usize = 16;

/// An object that a controller has to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WorkloadKey {
    controller: Controller,
    namespace: String,
    name: String,
}

/// The result of work on a key: the time at which to look again, in seconds since 1970.
type WorkResult = Result<Option<i64>, crate::status::ApiError>;

/// State of the stand-ins.
#[derive(Debug)]
pub(super) struct Workloads {
    set: ControllerSet,
    /// Keys that are to be worked off.
    queue: BTreeSet<WorkloadKey>,
    /// Keys that are to be looked at later, with the time in seconds since 1970.
    later: BTreeMap<WorkloadKey, i64>,
    /// The same in the order of the times.
    times: BTreeSet<(i64, WorkloadKey)>,
    /// Failures in a row of keys whose work failed.
    failures: BTreeMap<WorkloadKey, u32>,
    /// Keys whose creations wait for webhooks; at most one task of `calls` each.
    asked: BTreeSet<WorkloadKey>,
    /// Answers for the next look at a key.
    answered: BTreeMap<WorkloadKey, WebhookAnswers>,
    /// Calls of webhooks.
    calls: JoinSet<(WorkloadKey, WebhookAnswers)>,
    /// Right to call webhooks.
    slots: Arc<Semaphore>,
}

impl Workloads {
    pub(super) fn new(set: ControllerSet) -> Self {
        Self {
            set,
            queue: BTreeSet::new(),
            later: BTreeMap::new(),
            times: BTreeSet::new(),
            failures: BTreeMap::new(),
            asked: BTreeSet::new(),
            answered: BTreeMap::new(),
            calls: JoinSet::new(),
            slots: Arc::new(Semaphore::new(ASKED)),
        }
    }

    /// Makes the objects that the stand-ins need before the first object.
    pub(super) fn begin(&mut self, core: &ServerCore) {
        if self.set.has(Controller::Kubelet) {
            kubelet::register(core);
            // Without a namespace the key is that of the node.
            self.add(Controller::Kubelet, "", kubelet::NODE);
        }
    }

    /// Queues the keys that an event concerns.
    pub(super) fn observe(&mut self, core: &ServerCore, event: &ChangedObject) {
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
    fn add_all(&mut self, core: &ServerCore, controller: Controller, resource: Resource) {
        if self.set.has(controller) {
            for stored in objects::list(core, resource, "") {
                let namespace = meta::text(&stored.value, "namespace");
                self.add(controller, namespace, meta::text(&stored.value, "name"));
            }
        }
    }

    /// Queues a key, if the controller runs.
    fn add(&mut self, controller: Controller, namespace: &str, name: &str) {
        // Without ReplicaSets there are no Pods to count: Deployments are reported available.
        let needed = controller == Controller::Deployments;
        if self.set.has(controller) && (!needed || self.set.has(Controller::ReplicaSets)) {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            self.queue.insert(WorkloadKey { controller, namespace, name });
        }
    }

    /// Returns the time of the next look, in seconds since 1970.
    pub(super) fn due(&self) -> Option<i64> {
        self.times.first().map(|(at, _)| *at)
    }

    /// Works off a key; returns whether any was queued.
    pub(super) fn work(&mut self, core: &Arc<ServerCore>) -> bool {
        let now = core.clock.seconds();
        while let Some(done) = self.calls.try_join_next() {
            self.take(done.ok());
        }
        while let Some((_, key)) = self.times.first().filter(|(at, _)| *at <= now).cloned() {
            self.forget(&key);
            self.queue.insert(key);
        }
        // Removed first: a panic must not leave the key in the queue.
        let Some(key) = self.queue.pop_first() else { return false };
        self.forget(&key);
        // The answer queues the key again.
        if self.asked.contains(&key) {
            return true;
        }
        let reconcile = WorkloadReconcile::new(core, &key, self.answered.remove(&key));
        let done = sync(&reconcile, &key);
        if let Some(session) = reconcile.into_waiting() {
            self.ask(core, key, session);
            return true;
        }
        let again = match done {
            Ok(again) => {
                self.failures.remove(&key);
                again
            }
            Err(error) => Some(now + self.failed(&key, &error)),
        };
        if let Some(at) = again {
            let at = at.max(now + 1);
            self.times.insert((at, key.clone()));
            self.later.insert(key, at);
        }
        true
    }

    /// Notes the failure of work, and returns the seconds until the next try.
    fn failed(&mut self, key: &WorkloadKey, error: &crate::status::ApiError) -> i64 {
        let WorkloadKey { controller, namespace, name } = key;
        tracing::debug!(?controller, namespace, name, %error, "a stand-in could not do its work");
        let before = self.failures.entry(key.clone()).or_default();
        let pause = RETRY << (*before).min(DOUBLINGS);
        *before = before.saturating_add(1);
        pause
    }

    /// Puts the questions of a creation to their webhooks.
    fn ask(&mut self, core: &Arc<ServerCore>, key: WorkloadKey, session: Arc<WebhookSession>) {
        self.asked.insert(key.clone());
        let (core, slots) = (core.clone(), self.slots.clone());
        self.calls.spawn(async move {
            // Never closed.
            let _slot = slots.acquire_owned().await;
            let failure =
                RemainingWebhookCalls::new(session.clone(), None).goes_on(&core).await.err();
            (key, (session, failure))
        });
    }

    /// Waits for the answers for a key, and queues the key; waits for ever if no webhook is asked.
    /// Cancel safe.
    pub(super) async fn answered(&mut self) {
        match self.calls.join_next().await {
            Some(done) => self.take(done.ok()),
            None => std::future::pending().await,
        }
    }

    /// Queues a key whose webhooks have answered; `None` if the call panicked.
    fn take(&mut self, done: Option<(WorkloadKey, WebhookAnswers)>) {
        let Some((key, answered)) = done else { return };
        self.asked.remove(&key);
        self.answered.insert(key.clone(), answered);
        self.queue.insert(key);
    }

    /// Forgets the time of a key.
    fn forget(&mut self, key: &WorkloadKey) {
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
fn sync(reconcile: &WorkloadReconcile<'_>, key: &WorkloadKey) -> WorkResult {
    let WorkloadKey { controller, namespace, name } = key;
    match controller {
        Controller::Deployments => deployments::sync(reconcile, namespace, name),
        Controller::ReplicaSets => replicasets::sync(reconcile, namespace, name),
        Controller::StatefulSets => statefulsets::sync(reconcile, namespace, name),
        Controller::DaemonSets => daemonsets::sync(reconcile, namespace, name),
        Controller::Jobs => jobs::sync(reconcile, namespace, name),
        Controller::CronJobs => cronjobs::sync(reconcile, namespace, name),
        Controller::Endpoints => endpoints::sync_endpoints(reconcile, namespace, name),
        Controller::EndpointSlices => endpoints::sync_slice(reconcile, namespace, name),
        Controller::Volumes => volumes::sync(reconcile, namespace, name),
        Controller::Disruption => disruption::sync(reconcile, namespace, name),
        Controller::Signing => signing::sync(reconcile, name),
        Controller::Kubelet => kubelet::sync(reconcile, namespace, name),
        _ => Ok(None),
    }
}
