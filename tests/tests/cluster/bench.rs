//! A cluster that serves gadgets, and shorthands for the cluster's state.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::clock::Clock;
use windlass::prelude::*;
use windlass::testing::TestCluster;

use crate::gadget::Gadget;

pub(crate) struct Bench {
    pub(crate) cluster: TestCluster,
    pub(crate) gadgets: Api<Gadget>,
    pub(crate) children: Api<ConfigMap>,
}

impl Bench {
    /// Starts a cluster that serves gadgets. On the embedded server time is virtual from here on:
    /// the clock moves when no task can run.
    pub(crate) async fn start() -> Self {
        Self::on(TestCluster::start().await).await
    }

    /// As [`start`](Self::start), on a cluster of the test's own settings.
    pub(crate) async fn on(cluster: TestCluster) -> Self {
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        cluster.install::<Gadget>().await;
        let (client, namespace) = (cluster.client(), cluster.namespace());
        let (gadgets, children) = (client.namespace(namespace), client.namespace(namespace));
        Self { cluster, gadgets, children }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.cluster.client().environment().clock.clone()
    }

    /// Merges `spec` into a gadget's.
    pub(crate) async fn change(&self, name: &str, spec: Value) -> Gadget {
        self.gadgets.patch(name, Patch::Merge(json!({ "spec": spec }))).await.unwrap()
    }

    /// Returns a child's data; `None` when there is no such child.
    pub(crate) async fn data(&self, name: &str) -> Option<BTreeMap<String, String>> {
        Some(self.children.get_opt(name).await.unwrap()?.data.unwrap_or_default())
    }

    /// Returns the versions of a gadget and of the child.
    pub(crate) async fn versions(&self, name: &str) -> [String; 2] {
        let gadget = self.gadgets.get(name).await.unwrap();
        let child = self.children.get(name).await.unwrap();
        [gadget.resource_version().to_owned(), child.resource_version().to_owned()]
    }

    /// Waits until `met` holds; fails after a minute.
    pub(crate) async fn eventually(&self, condition: &str, mut met: impl AsyncFnMut() -> bool) {
        let clock = self.clock();
        let wait = async {
            while !met().await {
                clock.sleep(Duration::from_millis(25)).await;
            }
        };
        assert!(clock.timeout(Duration::from_secs(60), wait).await.is_some(), "never: {condition}");
    }
}
