//! Rights of an operator for tests: the printed roles as objects, and the client that uses them.

use std::sync::Arc;

use serde_json::Value;

use super::Manager;
use super::manifests::{self, ManifestOptions};
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

    /// Sets the listener of a test for the reconciles of all controllers.
    #[doc(hidden)]
    pub fn observed(self, observer: &Arc<dyn ReconcileObserver>) -> Self {
        self.controllers.iter().for_each(|controller| controller.observe(Arc::clone(observer)));
        self
    }

    /// Replaces the client of the operator's own cluster.
    #[doc(hidden)]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = client;
        self
    }
}
