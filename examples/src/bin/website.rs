//! A website operator: each `Website` becomes a Deployment and a Service.
//!
//! `cargo run --bin website` needs no cluster: the program brings an API server and a sample.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use serde::{Deserialize, Serialize};
use windlass::{Dependents, conditions::ConditionedStatus, prelude::*};

/// A static site, served by nginx under one host name.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws")]
#[resource(column(spec.host), column(ready), column(age))]
#[index(by_host = spec.host)]
pub struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
    status: Option<ConditionedStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct WebsiteSpec {
    /// Host name that the site answers to.
    host: String,
    /// Number of servers.
    #[schema(range(min = 1, max = 50))]
    replicas: i32,
}

#[derive(Conditions)]
#[conditions(ready(stalled_on(HostTaken)))]
enum WebsiteCondition {
    HostTaken,
}

#[derive(Dependents)]
#[dependents(for = Website, by = Sites)]
struct Children {
    app: Deployment,
    service: Service,
}

#[derive(Controller)]
#[controller(for = Website, dependents(Children), conditions(WebsiteCondition))]
struct Sites;

impl DesiredChildren for Sites {
    async fn precondition(&self, site: &Website, cx: &Context<Self>) -> Result<bool> {
        let sites = cx.watch_by(Website::BY_HOST, &site.spec.host).await?;
        let is_taken = sites.iter().any(|other| other.get().is_ok_and(|it| it.is_older_than(site)));
        WebsiteCondition::HostTaken.met_if(cx, is_taken, "OlderWebsite", &site.spec.host);
        Ok(!is_taken)
    }

    async fn app(&self, site: &Website, _: &Context<Self>) -> Result<Deployment> {
        Ok(object!(Deployment { spec: {
            replicas: site.spec.replicas,
            selector: { matchLabels: { app: site.name() } },
            template: {
                metadata: { labels: { app: site.name() } },
                spec: { containers: [{ name: "nginx", image: "nginx:1.29", ports: [{ containerPort: 80 }] }] },
            },
        } }))
    }

    async fn service(&self, site: &Website, _: &Context<Self>) -> Result<Service> {
        Ok(object!(Service { spec: { selector: { app: site.name() }, ports: [{ port: 80 }] } }))
    }
}

/// Returns the operator, for `main` and for tests.
pub fn operator(client: Client) -> Manager {
    Manager::new(client).leader_election("website-operator").install::<Website>().controller(Sites)
}

fn main() -> std::process::ExitCode {
    let sample = Website::new("home", WebsiteSpec { host: "home.example".to_owned(), replicas: 2 });
    windlass::cli::App::new(operator).package(windlass::package!()).sample(sample).main()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
    use serde_json::json;
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

    #[tokio::test]
    async fn the_older_of_two_websites_keeps_the_host_whatever_their_names() {
        let cluster = TestCluster::start().await;
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        cluster.install::<Website>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let mut sites = Vec::new();
        // The younger website is first in the alphabet, by namespace and by name. On a shared
        // server the operator of a test sees one namespace.
        for (namespace, name) in [("b", "shop"), ("a", "a-x")] {
            let mut namespace = namespace.to_owned();
            if cluster.is_embedded() {
                let object = object!(Namespace { metadata: { name: &namespace } });
                cluster.client().all().create(&object).await.unwrap();
            } else {
                namespace = cluster.namespace().to_owned();
            }
            let api = cluster.client().namespace::<Website>(&namespace);
            let spec = WebsiteSpec { host: "shop.example".to_owned(), replicas: 1 };
            api.create(&Website::new(name, spec)).await.unwrap();
            sites.push((api, name, cluster.client().namespace::<Deployment>(&namespace)));
            // Creation times are whole seconds.
            cluster.client().environment().clock.sleep(Duration::from_secs(2)).await;
        }
        running.settled().await;
        let (older, name, deployments) = &sites[0];
        let scaled = windlass::api::Patch::Merge(json!({ "spec": { "replicas": 2 } }));
        older.patch(name, scaled).await.unwrap();
        running.settled().await;
        let deployment = deployments.get(name).await.unwrap();
        assert_eq!(deployment.spec.unwrap().replicas, Some(2), "it is still served");
        let (younger, name, deployments) = &sites[1];
        let status = younger.get(name).await.unwrap().status.unwrap();
        assert!(status.conditions.is_met("HostTaken"));
        assert_eq!(status.conditions.get("Ready").unwrap().reason, "OlderWebsite");
        assert!(deployments.get_opt(name).await.unwrap().is_none());
        running.stop().await;
    }

    #[tokio::test]
    async fn the_deployment_of_somebody_else_is_neither_changed_nor_deleted() {
        let cluster = TestCluster::start().await;
        cluster.install::<Website>().await;
        let deployments = cluster.client().namespace::<Deployment>(cluster.namespace());
        let theirs = object!(Deployment {
            metadata: { name: "payments" },
            spec: {
                replicas: 3,
                selector: { matchLabels: { app: "payments" } },
                template: {
                    metadata: { labels: { app: "payments" } },
                    spec: { containers: [{ name: "payments", image: "payments:1" }] },
                },
            },
        });
        deployments.create(&theirs).await.unwrap();
        let running = cluster.spawn(operator(cluster.client()));
        let sites = cluster.client().namespace::<Website>(cluster.namespace());
        let spec = WebsiteSpec { host: "a.example".to_owned(), replicas: 1 };
        sites.create(&Website::new("payments", spec)).await.unwrap();
        let events = cluster.client().namespace::<Event>(cluster.namespace());
        let clock = cluster.client().environment().clock.clone();
        let reported = async {
            let is_report = |event: &Event| event.reason.as_deref() == Some("ChildTaken");
            while !events.list().await.unwrap().items.iter().any(is_report) {
                clock.sleep(Duration::from_millis(50)).await;
            }
        };
        assert!(clock.timeout(Duration::from_secs(60), reported).await.is_some(), "no Event");
        sites.delete("payments").await.unwrap();
        let left = deployments.get("payments").await.unwrap();
        assert!(left.metadata.owner_references.is_none());
        let spec = left.spec.unwrap();
        let images: Vec<_> = spec.template.spec.unwrap().containers;
        assert_eq!((spec.replicas, images.len()), (Some(3), 1));
        running.stop().await;
    }
}
