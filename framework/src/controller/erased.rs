//! A controller as the manager sees it: no type parameters.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Unrest;
use crate::client::Client;
use crate::error::Error;
use crate::informer::InformerRegistry;
use crate::rbac::Rule;

/// What the manager hands a controller when it may start working.
#[derive(Clone, Debug)]
pub struct ControllerRun {
    /// Client for writes; gated by leadership.
    pub client: Client,
    /// Caches, running. Those that controllers built by [`Wiring`](crate::controller::Wiring) are wired
    /// to may still be empty; such a controller waits for its own. All others are synced.
    pub informers: InformerRegistry,
    /// No new reconcile starts once this is cancelled; running ones are told.
    pub stop: CancellationToken,
    /// How long running reconciles may take to end after `stop`.
    pub drain: Duration,
}

/// How a controller is doing, for `settled()`, debug dumps and drains.
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

/// A controller without its types: what [`Manager`](crate::manager::Manager) holds.
pub trait ErasedController: Debug + Send + Sync + 'static {
    /// Name; labels metrics and logs.
    fn name(&self) -> &str;

    /// The permissions it needs.
    fn rules(&self) -> Vec<Rule>;

    /// Registers its informers, indexes and listeners; called once, before the caches start. Keys
    /// queue up from here on.
    ///
    /// # Errors
    /// An index that it was wired with cannot be built: it must not be started.
    fn attach(&self, informers: &InformerRegistry) -> Result<(), Error>;

    /// Works on keys, once its caches are filled, until `run.stop`, then drains; returns true when every reconcile ended within
    /// the drain. Called again after leadership was lost and won.
    fn run(&self, run: ControllerRun) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;

    /// How it is doing now.
    fn state(&self) -> ControllerState;

    /// How many objects it reconciles at once, instead of what it was wired with; called once, before
    /// [`attach`](Self::attach). By default it is ignored.
    fn limit_workers(&self, _workers: usize) {}

    /// How it is doing now, in detail, for the debug page: an object, each list in it with at most
    /// `limit` entries, and no secrets in it. Default: the name and the numbers of
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

    /// Why it does not come to rest.
    fn unrest(&self) -> Unrest {
        Unrest::default()
    }
}
