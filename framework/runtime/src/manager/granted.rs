//! Operators in tests: the printed roles as objects, the client that uses them, and the parts that
//! a test leaves out.

use std::sync::Arc;

use serde_json::Value;

use super::manifests::{self, ManifestOptions};
use super::{Bind, Manager};
use crate::controller::{ErasedController, ReconcileObserver};
use windlass_client::client::Client;
use windlass_core::error::Error;
use windlass_core::rbac::Rule;

impl Manager {
    /// Returns the roles and bindings of the [manifests](Self::manifests).
    ///
    /// # Errors
    /// As [`manifests`](Self::manifests), without those of the definitions.
    #[doc(hidden)]
    pub fn roles(&self, options: &ManifestOptions) -> Result<Vec<Value>, Error> {
        manifests::roles(self, options)
    }

    /// Returns the grants of all controllers in the form of `can(…)`, each with a rule of a single
    /// verb.
    #[doc(hidden)]
    pub fn grants(&self) -> Vec<(String, Rule)> {
        self.controllers.iter().flat_map(|controller| controller.grants()).collect()
    }

    /// Returns the client of the operator's own cluster.
    #[doc(hidden)]
    pub fn own_client(&self) -> &Client {
        &self.client
    }

    /// Returns the controllers.
    #[doc(hidden)]
    pub fn all_controllers(&self) -> Vec<Arc<dyn ErasedController>> {
        self.controllers.clone()
    }

    /// Adds a listener for the reconciles of all controllers.
    #[doc(hidden)]
    pub fn observed(self, observer: &Arc<dyn ReconcileObserver>) -> Self {
        self.controllers.iter().for_each(|controller| controller.observe(Arc::clone(observer)));
        self
    }

    /// Opens no socket and listens to no signal unless asked to: for operators inside a test.
    #[doc(hidden)]
    pub fn quiet(mut self) -> Self {
        for bind in [&mut self.health, &mut self.metrics] {
            if matches!(bind, Bind::Default(_)) {
                *bind = Bind::Off;
            }
        }
        self
    }

    /// Prepares a replay: nothing is left that has no other side in a recording, which are servers,
    /// signals, the election, definitions and runnables. `workers` is the number of objects that
    /// may wait for their admission.
    #[doc(hidden)]
    pub fn replayed(self, observer: &Arc<dyn ReconcileObserver>, workers: usize) -> Self {
        let mut manager = self.observed(observer).without_health().without_metrics();
        manager.definitions.clear();
        manager.runnables.clear();
        manager.without_signals().without_leader_election().max_concurrent_reconciles(workers)
    }

    /// Replaces the client of the operator's own cluster.
    #[doc(hidden)]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = client;
        self
    }
}
