//! Controllers that every cluster has: garbage collection, namespaces, aggregated roles, protection
//! of storage.
//!
//! A single task runs all controllers: the task waits for the store's next revision, reads every
//! change since the last revision, in order, and acts through the same verbs as clients. The single
//! order of work means that equal histories give equal outcomes. On request the task also stands in
//! for the controllers of workloads, and for scheduler and kubelet: Pods then run without
//! containers.

mod changes;
mod collect;
mod deployments;
pub(crate) mod expiry;
mod garbage;
mod namespaces;
mod protection;
mod roles;
mod selection;
#[cfg(test)]
mod tests;
mod workloads;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::core::ServerCore;
use crate::kinds::Kind;
use crate::verbs::VerbCall;
use changes::{ChangedObject, Follower};
use garbage::Garbage;
use namespaces::Namespaces;
pub(crate) use selection::Controller;
pub use selection::ControllerSet;
use workloads::Workloads;

/// Pieces of work in a row before other tasks of the runtime get their turn.
const ROUND: usize = 256;

/// Longest wait for timed work, in seconds: a timer has a largest time.
const LONGEST: u64 = 24 * 3600;

/// State of all controllers of a server.
#[derive(Debug)]
struct Controllers {
    core: Arc<ServerCore>,
    /// Reader of all changes.
    follower: Follower,
    garbage: Garbage,
    namespaces: Namespaces,
    workloads: Workloads,
    /// The controllers that run.
    set: ControllerSet,
    /// Whether aggregated roles have their rules before the first round.
    has_rules: bool,
}

/// Works through all present objects, then starts a task that follows changes until the server
/// stops. `is_complete`: the present objects are those of a server with the same controllers.
///
/// Must be called inside a tokio runtime.
pub(crate) fn start(core: &Arc<ServerCore>, set: ControllerSet, is_complete: bool) {
    core.has_kubelet.store(set.has(Controller::Kubelet), Ordering::Relaxed);
    core.counts_quotas.store(set.has(Controller::Quota), Ordering::Relaxed);
    let mut controllers = Controllers::new(core.clone(), set);
    controllers.has_rules = is_complete;
    controllers.workloads.begin(core);
    // In the caller's task: after `start` returns, the initial objects are complete.
    while controllers.round() {}
    tokio::spawn(controllers.run());
}

impl Controllers {
    /// Returns controllers that have seen nothing yet.
    fn new(core: Arc<ServerCore>, set: ControllerSet) -> Self {
        Self {
            core,
            follower: Follower::default(),
            garbage: Garbage::default(),
            namespaces: Namespaces::new(set),
            workloads: Workloads::new(set),
            set,
            has_rules: false,
        }
    }

    /// Follows changes until the server stops.
    async fn run(mut self) {
        loop {
            // Read before the round: a change during the round then ends the wait below at once.
            let seen = self.core.store.revision();
            if self.round() {
                // The rounds never wait: without this, endless work would keep the runtime's
                // thread.
                tokio::task::yield_now().await;
                if self.core.stop.is_cancelled() {
                    return;
                }
                continue;
            }
            let (pause, is_due) = (self.pause(), self.workloads.due().is_some());
            tokio::select! {
                biased;
                // The stop first: a server that is busy must end all the same.
                () = self.core.stop.cancelled() => return,
                () = self.core.store.reached(seen + 1) => {}
                () = self.workloads.answered() => {}
                () = tokio::time::sleep(pause), if is_due => {}
            }
        }
    }

    /// Returns the time until the next timed work is due.
    fn pause(&self) -> Duration {
        let due = self.workloads.due().unwrap_or(i64::MAX);
        let seconds = due.saturating_sub(self.core.clock.seconds());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0).min(LONGEST))
    }

    /// Reads new changes and does some work; returns whether there was any.
    fn round(&mut self) -> bool {
        // Read before: changes that come during the poll may be read in part.
        let seen = self.core.store.revision();
        let events = self.follower.poll(&self.core);
        for event in &events {
            if self.set.has(Controller::Garbage) {
                guard("garbage", || self.garbage.observe(event));
            }
            guard("namespaces", || self.namespaces.observe(event));
            guard("protection", || protection::observe(&self.core, self.set, event));
            let alone = !self.set.has(Controller::ReplicaSets);
            if self.set.has(Controller::Deployments)
                && alone
                && event.kind.is("apps", "deployments")
            {
                guard("deployments", || deployments::observe(&self.core, event));
            }
            guard("workloads", || self.workloads.observe(&self.core, event));
        }
        // Once for all events: the update reads the present roles.
        let is_role =
            |event: &ChangedObject| event.kind.is("rbac.authorization.k8s.io", "clusterroles");
        let has_rules = std::mem::take(&mut self.has_rules);
        if self.set.has(Controller::Roles) && !has_rules && events.iter().any(is_role) {
            guard("roles", || roles::aggregate(&self.core));
        }
        self.garbage.caught_up(seen);
        let mut worked = !events.is_empty();
        for _ in 0..ROUND {
            // A panicking piece of work has already left the queue, so the loop ends.
            let namespaces = guard("namespaces", || self.namespaces.work(&self.core));
            let garbage = guard("garbage", || self.garbage.work(&self.core));
            // A panic counts as work, because more may be queued behind.
            let workloads = guard("workloads", || self.workloads.work(&self.core));
            let more =
                namespaces.unwrap_or(true) | garbage.unwrap_or(true) | workloads.unwrap_or(true);
            worked |= more;
            if !more {
                break;
            }
        }
        worked
    }
}

/// Runs a piece of a controller's work; a panic costs only that piece.
fn guard<T>(controller: &str, work: impl FnOnce() -> T) -> Option<T> {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    if done.is_err() {
        tracing::error!(
            controller,
            "a controller panicked; it goes on with its next piece of work"
        );
    }
    done.ok()
}

/// Gives the default roles that aggregate others their rules, without waiting for the task.
pub(crate) fn fill_default_roles(core: &ServerCore) {
    for name in ["view", "edit", "admin"] {
        roles::update_rules(core, name);
    }
}

/// Writes the certificate of the server's authority to every namespace.
pub(crate) fn publish_root(core: &ServerCore, certificate: &str) {
    namespaces::publish_root(core, certificate);
}

/// Returns a call by the controllers for an object.
fn call(core: &ServerCore, kind: &Arc<Kind>, namespace: &str, name: &str) -> Option<VerbCall> {
    let mut call =
        VerbCall::by_server(core, &kind.served.group, &kind.served.plural, namespace, name).ok()?;
    // `by_server` finds a kind by name, perhaps in another version: the given version is meant.
    call.kind = kind.clone();
    "kube-controller-manager".clone_into(&mut call.options.manager);
    Some(call)
}

impl ChangedObject {
    /// Returns the newest known state.
    fn object(&self) -> &serde_json::Value {
        match (&self.after, &self.before) {
            (Some(object), _) | (None, Some(object)) => &object.value,
            (None, None) => &serde_json::Value::Null,
        }
    }
}
