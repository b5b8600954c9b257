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
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;
    use windlass::events::Warning;
    use windlass::testing::{Case, Table, TestCluster, check};

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

    fn site(namespace: &str, name: &str, created: &str) -> Website {
        let spec = WebsiteSpec { host: "shop.example".to_owned(), replicas: 2 };
        let mut site = Website::new(name, spec);
        site.metadata.namespace = Some(namespace.to_owned());
        site.metadata.creation_timestamp = Some(Time(created.parse().unwrap()));
        site
    }

    fn deployment(image: &str) -> Deployment {
        object!(Deployment { metadata: { name: "shop", namespace: "b" }, spec: {
            replicas: 2,
            selector: { matchLabels: { app: "shop" } },
            template: {
                metadata: { labels: { app: "shop" } },
                spec: { containers: [{ name: "nginx", image, ports: [{ containerPort: 80 }] }] },
            },
        } })
    }

    fn ready(reason: &str) -> serde_json::Value {
        json!({ "type": "Ready", "status": "False", "reason": reason })
    }

    fn cases() -> Table {
        // The younger website is first in the alphabet, by namespace and by name.
        let older = site("b", "shop", "2026-01-01T00:00:00Z");
        let younger = site("a", "a-x", "2026-01-01T00:00:02Z");
        let service = object!(Service {
            metadata: { name: "shop", namespace: "b" },
            spec: { selector: { app: "shop" }, ports: [{ port: 80 }] },
        });
        let taken = json!({ "type": "HostTaken", "status": "True" });
        Table::new(operator)
            .case(
                Case::new("the older of two websites is served", &older)
                    .given(&younger)
                    .reads("watch websites.example.dev by shop.example")
                    .creates(&deployment("nginx:1.29"))
                    .creates(&service)
                    .status(json!({ "conditions": [ready("Dependents")] }))
                    .waits("Dependents"),
            )
            .case(
                Case::new("the younger one gets nothing, whatever the names", &younger)
                    .given(&older)
                    .status(json!({ "conditions": [taken, ready("OlderWebsite")] })),
            )
            .case(
                Case::new("the Deployment of somebody else is neither changed nor deleted", &older)
                    .given(&deployment("payments:1"))
                    .event(Warning, "ChildTaken")
                    .creates(&service)
                    .fails("an object of this name exists"),
            )
    }

    #[tokio::test]
    async fn cases_hold_without_a_server_and_on_one() {
        cases().check().await;
        cases().check_on_server().await;
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<Website>().await;
        assert!(report.unchecked().is_empty(), "{report}");
    }
}
