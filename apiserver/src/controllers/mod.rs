//! Controllers that a cluster is not one without: garbage collection, namespaces, aggregated roles.
//!
//! One task works them all: it waits for the store's next revision, reads every change since the last,
//! in order, and acts through the same verbs as clients do. One order of work means that equal histories
//! give equal outcomes. On request it also stands in for what needs nodes: it reports Deployments
//! available. Absent: everything that would start or schedule pods.

mod changes;
mod collect;
mod deployments;
mod garbage;
mod namespaces;
pub(crate) mod roles;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::core::Core;
use crate::kinds::Kind;
use crate::verbs::Call;
use changes::{Event, Follower};
use garbage::Garbage;
use namespaces::Namespaces;

/// How many pieces of work are done before others get their turn.
const ROUND: usize = 256;

/// All controllers of a server.
#[derive(Debug)]
struct Controllers {
    core: Arc<Core>,
    follower: Follower,
    garbage: Garbage,
    namespaces: Namespaces,
    stand_ins: bool,
}

/// Brings everything in order that is there already, then keeps it so until the server stops.
///
/// Must be called inside a tokio runtime.
pub(crate) fn start(core: &Arc<Core>, stand_ins: bool) {
    let mut controllers = Controllers::new(core.clone(), stand_ins);
    while controllers.round() {}
    tokio::spawn(controllers.run());
}

impl Controllers {
    fn new(core: Arc<Core>, stand_ins: bool) -> Self {
        Self {
            core,
            follower: Follower::default(),
            garbage: Garbage::default(),
            namespaces: Namespaces::default(),
            stand_ins,
        }
    }

    async fn run(mut self) {
        loop {
            let seen = self.core.store.revision();
            if self.round() {
                tokio::task::yield_now().await;
                if self.core.stop.is_cancelled() {
                    return;
                }
                continue;
            }
            tokio::select! {
                biased;
                () = self.core.stop.cancelled() => return,
                () = self.core.store.reached(seen + 1) => {}
            }
        }
    }

    /// Looks at what is new and does some work; was there anything?
    fn round(&mut self) -> bool {
        let events = self.follower.poll(&self.core);
        for event in &events {
            guard("garbage", || self.garbage.observe(event));
            guard("namespaces", || self.namespaces.observe(event));
            if event.kind.is("rbac.authorization.k8s.io", "clusterroles") {
                guard("roles", || roles::aggregate(&self.core));
            }
            if self.stand_ins && event.kind.is("apps", "deployments") {
                guard("deployments", || deployments::observe(&self.core, event));
            }
        }
        let mut worked = !events.is_empty();
        for _ in 0..ROUND {
            // What panicked has left its queue already, so this ends.
            let namespaces = guard("namespaces", || self.namespaces.work(&self.core));
            let garbage = guard("garbage", || self.garbage.work(&self.core));
            let more = namespaces.unwrap_or(true) | garbage.unwrap_or(true);
            worked |= more;
            if !more {
                break;
            }
        }
        worked
    }
}

/// Runs one piece of a controller's work; a panic costs that piece only.
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

/// Tells every namespace which authority the server's certificate is from.
pub(crate) fn publish_root(core: &Core, certificate: &str) {
    namespaces::publish_root(core, certificate);
}

/// A call of the controllers about one object.
fn call(core: &Core, kind: &Arc<Kind>, namespace: &str, name: &str) -> Option<Call> {
    let mut call = core.call(&kind.served.group, &kind.served.plural, namespace, name).ok()?;
    call.kind = kind.clone();
    "kube-controller-manager".clone_into(&mut call.options.manager);
    Some(call)
}

impl Event {
    /// The newest state that is known.
    fn object(&self) -> &serde_json::Value {
        match (&self.after, &self.before) {
            (Some(object), _) | (None, Some(object)) => &object.value,
            (None, None) => &serde_json::Value::Null,
        }
    }
}
