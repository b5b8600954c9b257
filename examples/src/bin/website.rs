//! A website operator: each `Website` becomes a Deployment and a Service.
//!
//! `cargo run --bin website` needs no cluster: it brings its own API server and a sample.

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{from_value, json};
use windlass::prelude::*;

/// A static site, served by nginx under one host name.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws")]
#[resource(column(name = "Host", path = ".spec.host"))]
#[index(by_host = spec.host)]
pub struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
    status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct WebsiteSpec {
    /// Host name that the site answers to.
    host: String,
    /// How many servers run.
    #[schemars(range(min = 1, max = 50))]
    replicas: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct WebsiteStatus {
    conditions: Conditions,
}

#[derive(Controller)]
#[controller(for = Website, owns(Deployment, Service))]
struct Sites;

impl Reconciler for Sites {
    type Object = Website;

    async fn reconcile(&self, site: &Website, cx: &Context<Self>) -> Result {
        let rivals = cx.store().by_index(Website::BY_HOST, &site.spec.host);
        if rivals.first().is_some_and(|first| *first.key() != site.key()) {
            cx.set_condition(unmet("Ready", "HostTaken", &site.spec.host)).await?;
            return Ok(Action::requeue_after(Duration::from_secs(60)));
        }
        let labels = json!({ "app": site.name() });
        let pod = json!({
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "nginx", "image": "nginx:1.29", "ports": [{ "containerPort": 80 }] }] },
        });
        let deployment: Deployment = from_value(json!({
            "metadata": { "name": site.name() },
            "spec": { "replicas": site.spec.replicas, "selector": { "matchLabels": labels }, "template": pod },
        }))?;
        let service: Service = from_value(json!({
            "metadata": { "name": site.name() }, "spec": { "selector": labels, "ports": [{ "port": 80 }] },
        }))?;
        let deployment = cx.apply_owned(deployment).await?;
        cx.apply_owned(service).await?;
        let ready =
            deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
        let condition = if ready >= site.spec.replicas { met } else { unmet };
        cx.set_condition(condition(
            "Ready",
            "Replicas",
            format!("{ready} of {} ready", site.spec.replicas),
        ))
        .await?;
        Ok(Action::requeue_after(Duration::from_secs(300)))
    }
}

/// The operator, for `main` and for tests.
pub fn operator(client: Client) -> Manager {
    Manager::new(client).leader_election("website-operator").install::<Website>().controller(Sites)
}

fn main() -> ExitCode {
    let spec = WebsiteSpec { host: "home.example".to_owned(), replicas: 2 };
    windlass::cli::App::new(operator).sample(Website::new("home", spec)).main()
}

#[cfg(test)]
mod tests {
    use windlass::testing::TestCluster;

    use super::*;

    #[tokio::test]
    async fn a_website_gets_a_deployment_it_owns() {
        let cluster = TestCluster::start().await;
        cluster.install::<Website>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let spec = WebsiteSpec { host: "a.example".to_owned(), replicas: 2 };
        let sites = cluster.client().namespace::<Website>(cluster.namespace());
        let site = sites.create(&Website::new("home", spec)).await.unwrap();
        running.settled().await;
        let deployments = cluster.client().namespace::<Deployment>(cluster.namespace());
        let deployment = deployments.get("home").await.unwrap();
        assert_eq!(deployment.metadata.owner_references.unwrap()[0].uid, site.uid());
        assert_eq!(deployment.spec.unwrap().replicas, Some(2));
        running.stop().await;
    }
}
