//! The program of the book's chapter "Your first operator": `book/src/first-operator.md`, block by
//! block.
//!
//! `examples/tests/tutorial.rs` compares the two.

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

/// A static site, served by nginx under one host name.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws")]
#[resource(column(spec.host), column(ready), column(age))]
#[index(by_host = spec.host)]
pub struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
    status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct WebsiteSpec {
    /// Host name that the site answers to.
    host: String,
    /// Number of servers.
    #[schema(range(min = 1, max = 50))]
    replicas: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
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
        if rivals.iter().any(|rival| rival.get().is_ok_and(|rival| rival.is_older_than(site))) {
            cx.set_condition(unmet("Ready", "HostTaken", &site.spec.host)).await?;
            return Ok(Action::requeue_after(Duration::from_secs(60)));
        }
        let deployment = cx.apply_owned(deployment_for(site)).await?;
        cx.apply_owned(service_for(site)).await?;
        let ready =
            deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0);
        let condition = if ready >= site.spec.replicas { met } else { unmet };
        cx.set_condition(condition("Ready", "Replicas", format!("{ready} ready"))).await?;
        Ok(Action::requeue_after(Duration::from_secs(300)))
    }
}

fn deployment_for(site: &Website) -> Deployment {
    object!(Deployment {
        metadata: { name: site.name() },
        spec: {
            replicas: site.spec.replicas,
            selector: { matchLabels: { app: site.name() } },
            template: {
                metadata: { labels: { app: site.name() } },
                spec: {
                    containers: [{
                        name: "nginx",
                        image: "nginx:1.29",
                        ports: [{ containerPort: 80 }],
                    }],
                },
            },
        },
    })
}

fn service_for(site: &Website) -> Service {
    object!(Service {
        metadata: { name: site.name() },
        spec: { selector: { app: site.name() }, ports: [{ port: 80 }] },
    })
}

fn operator(client: Client) -> Manager {
    Manager::new(client).leader_election("website-operator").install::<Website>().controller(Sites)
}

fn main() -> ExitCode {
    let spec = WebsiteSpec { host: "home.example".to_owned(), replicas: 2 };
    windlass::cli::App::new(operator)
        .package(windlass::package!())
        .sample(Website::new("home", spec))
        .main()
}

#[cfg(test)]
mod tests {
    use windlass::testing::{TestCluster, check};

    use super::*;

    fn website(name: &str) -> Website {
        let spec = WebsiteSpec { host: "a.example".to_owned(), replicas: 2 };
        Website::new(name, spec)
    }

    #[tokio::test]
    async fn a_website_gets_a_deployment_that_it_owns() {
        let cluster = TestCluster::start().await;
        cluster.install::<Website>().await;
        let running = cluster.spawn(operator(cluster.client()));

        let sites = cluster.client().namespace::<Website>(cluster.namespace());
        let site = sites.create(&website("home")).await.unwrap();
        running.settled().await;

        let deployments = cluster.client().namespace::<Deployment>(cluster.namespace());
        let deployment = deployments.get("home").await.unwrap();
        assert_eq!(deployment.metadata.owner_references.unwrap()[0].uid, site.uid());
        assert_eq!(deployment.spec.unwrap().replicas, Some(2));
        running.stop().await;
    }

    #[tokio::test]
    async fn one_of_two_websites_of_a_host_gets_nothing() {
        let cluster = TestCluster::start().await;
        cluster.install::<Website>().await;
        let sites = cluster.client().namespace::<Website>(cluster.namespace());
        for name in ["a", "b"] {
            sites.create(&website(name)).await.unwrap();
        }
        let running = cluster.spawn(operator(cluster.client()));
        running.settled().await;

        let deployments = cluster.client().namespace::<Deployment>(cluster.namespace());
        // Made within one second, so their uids decide which of them counts as the older.
        let a_has_one = deployments.get_opt("a").await.unwrap().is_some();
        let b_has_one = deployments.get_opt("b").await.unwrap().is_some();
        assert_ne!(a_has_one, b_has_one);
        let loser = if a_has_one { "b" } else { "a" };
        let conditions = sites.get(loser).await.unwrap().status.unwrap().conditions;
        assert!(!conditions.is_met("Ready"));
        running.stop().await;
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<Website>().await;
        assert!(report.unchecked().is_empty(), "{report}");
    }
}
