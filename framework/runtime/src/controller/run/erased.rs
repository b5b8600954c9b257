//! A controller without type parameters, the manager's view of a controller.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::busy::BusyReport;
use crate::controller::{ChangeLog, ExternalRegistry, PlannedObject, ReconcileObserver};
use windlass_cache::informer::InformerRegistry;
use windlass_client::client::Client;
use windlass_core::error::Error;
use windlass_core::rbac::Rule;
use windlass_core::resource::{ObjectKey, ResourceInfo};

/// The environment that the manager passes to a controller when the controller may start working.
#[derive(Clone, Debug)]
pub struct ControllerRun {
    /// Client for writes; gated by leadership.
    pub client: Client,
    /// Running caches. The caches of controllers built by
    /// [`ControllerBuilder`](crate::controller::ControllerBuilder) may still be empty; such a
    /// controller waits for its own caches. All others are synced.
    pub informers: InformerRegistry,
    /// No new reconcile starts after the token's cancellation; running ones are notified.
    pub stop: CancellationToken,
    /// Time for running reconciles to end after `stop`.
    pub drain: Duration,
}

/// The environment and the extent of the plan of a controller.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct PlanRun {
    /// Client of the operator; makes dry runs only.
    pub client: Client,
    /// Filled caches.
    pub informers: InformerRegistry,
    /// Objects to reconcile; `None` for all.
    pub keys: Option<BTreeSet<ObjectKey>>,
    /// Number of objects that are reconciled at once.
    pub concurrency: usize,
    /// Longest time of a reconcile, unless the controller's is shorter.
    pub timeout: Duration,
}

/// State of a controller in numbers, for `settled()`, debug dumps and drains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerState {
    /// Keys ready to be worked on.
    pub queued: usize,
    /// Keys in work.
    pub working: usize,
    /// Keys waiting for a retry after a failure.
    pub backing_off: usize,
    /// Keys waiting for a requeue after a success.
    pub delayed: usize,
    /// Reconciles finished since the start.
    pub reconciles: u64,
}

/// A controller without type parameters, as held by [`Manager`](crate::manager::Manager).
pub trait ErasedController: Debug + Send + Sync + 'static {
    /// Returns the name, which labels metrics and logs.
    fn name(&self) -> &str;

    /// Returns the permissions that the controller needs.
    fn rules(&self) -> Vec<Rule>;

    /// Returns the permissions among [`rules`](Self::rules) that were asked for individually by
    /// `can(…)`, each with a rule of a single verb. Default: none.
    #[doc(hidden)]
    fn grants(&self) -> Vec<(String, Rule)> {
        Vec::new()
    }

    /// Registers informers, indexes and listeners; called once, before the caches start. Keys are
    /// queued from then on.
    ///
    /// # Errors
    /// When an index of the controller cannot be built: the controller must not be started.
    fn attach(&self, informers: &InformerRegistry) -> Result<(), Error>;

    /// Works on keys, once the controller's caches are filled, until `run.stop`, then drains;
    /// returns true when every reconcile ended within the drain. Called again after leadership was
    /// lost and won.
    fn run(&self, run: ControllerRun) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;

    /// Makes the controller the shadow of a running one; called before the start, with a client for
    /// dry runs. Ignored by default.
    #[doc(hidden)]
    fn follow(&self, _settle_time: Duration) {}

    /// Returns the reconciled kind of a controller that can be [planned](Self::plan). Default:
    /// none.
    #[doc(hidden)]
    fn planned_kind(&self) -> Option<&ResourceInfo> {
        None
    }

    /// Returns the types of the conditions that the controller keeps in the status of the
    /// [kind](Self::planned_kind), the root first, or that of the outcome. Default: none.
    #[doc(hidden)]
    fn kept_conditions(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of the drivers of external resources that the controller is known to have:
    /// of the fields of its graphs, and of a controller that is nothing else. Default: none.
    #[doc(hidden)]
    fn driver_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Gives the controller the drivers of external resources that are at work in all controllers
    /// of the operator; called once, before [`attach`](Self::attach). Ignored by default.
    #[doc(hidden)]
    fn share_drivers(&self, _at_work: &Arc<ExternalRegistry>) {}

    /// Reconciles objects once, with every write as a dry run; called after
    /// [`attach`](Self::attach), in place of [`run`](Self::run). Default: no objects.
    #[doc(hidden)]
    fn plan(&self, run: PlanRun) -> Pin<Box<dyn Future<Output = Vec<PlannedObject>> + Send + '_>> {
        let _ = run;
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns the current state.
    fn state(&self) -> ControllerState;

    /// Overrides the number of objects that are reconciled at once; called once, before
    /// [`attach`](Self::attach). Ignored by default.
    fn limit_workers(&self, _workers: usize) {}

    /// Adds a listener for the reconciles; called before the controller runs. Ignored by default.
    #[doc(hidden)]
    fn observe(&self, _observer: Arc<dyn ReconcileObserver>) {}

    /// Makes an object due, for a replay; called while the controller runs. Ignored by default.
    #[doc(hidden)]
    fn enqueue(&self, _key: ObjectKey) {}

    /// Overrides the detail in which writes are logged; called before the controller runs. Ignored
    /// by default.
    fn log_changes(&self, _detail: ChangeLog) {}

    /// Returns the current state in detail, for the debug page: an object, each list with at most
    /// `limit` entries, without secrets. Default: the name and the numbers of
    /// [`state`](Self::state).
    fn dump(&self, limit: usize) -> Value {
        let _ = limit;
        let ControllerState { queued, working, backing_off, delayed, reconciles } = self.state();
        json!({
            "name": self.name(),
            "reconciles": reconciles,
            "queue": {
                "queued": queued, "working": working,
                "backingOff": backing_off, "delayed": delayed,
            },
        })
    }

    /// Returns a report of the objects that keep the controller from coming to rest.
    fn busy_report(&self) -> BusyReport {
        BusyReport::default()
    }
}
