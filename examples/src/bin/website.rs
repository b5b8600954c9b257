//! A website operator: each `Website` becomes a Deployment and a Service.
//!
//! `cargo run --bin website` needs no cluster: it brings its own API server and a sample.

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
        if cx.store().by_index(Website::BY_HOST, &site.spec.host).len() > 1 {
            cx.set_condition(unmet("Ready", "HostTaken", &site.spec.host)).await?;
            return Ok(Action::done());
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
        let ready = deployment.status.and_then(|status| status.ready_replicas).unwrap_or(0);
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
