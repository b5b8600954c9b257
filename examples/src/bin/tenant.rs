//! A tenant operator: each `Tenant` of the cluster gets namespaces, each with a quota.
//!
//! `cargo run --bin tenant` needs no cluster: the program brings an API server and a sample. The
//! children are a graph: any number of namespaces, and behind them as many quotas; children that
//! leave the list are deleted.

use std::process::ExitCode;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use serde::{Deserialize, Serialize};
use windlass::Dependents;
use windlass::prelude::*;

/// A team with namespaces of its own.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", cluster)]
#[resource(column("Ready", ".status.conditions[?(@.type==\"Ready\")].status"))]
pub struct Tenant {
    metadata: ObjectMeta,
    spec: TenantSpec,
    status: Option<TenantStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct TenantSpec {
    /// Namespaces by their purpose: `dev` of the tenant `acme` is the namespace `acme-dev`.
    namespaces: Vec<String>,
    /// Pods that each namespace may have; without a limit there is no quota.
    pods: Option<i32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct TenantStatus {
    conditions: Conditions,
}

impl Tenant {
    fn is_limited(&self) -> bool {
        self.spec.pods.is_some()
    }

    fn names(&self) -> Vec<String> {
        self.spec.namespaces.iter().map(|purpose| format!("{}-{purpose}", self.name())).collect()
    }
}

#[derive(Dependents)]
#[dependents(by = Tenants)]
struct TenantChildren {
    namespaces: Vec<Namespace>,
    #[dependent(after(namespaces), when = Tenant::is_limited)]
    quotas: Vec<ResourceQuota>,
}

#[derive(Controller)]
#[controller(for = Tenant, dependents(TenantChildren))]
struct Tenants;

impl DesiredTenantChildren for Tenants {
    async fn namespaces(&self, tenant: &Tenant, _: &Context<Self>) -> Result<Vec<Namespace>> {
        let labels =
            |name| object!(Namespace { metadata: { name, labels: { tenant: tenant.name() } } });
        Ok(tenant.names().into_iter().map(labels).collect())
    }

    async fn quotas(&self, tenant: &Tenant, _: &Context<Self>) -> Result<Vec<ResourceQuota>> {
        let pods = tenant.spec.pods.unwrap_or_default().to_string();
        let quota = |namespace| object!(ResourceQuota { metadata: { name: "pods", namespace }, spec: { hard: { pods: &pods } } });
        Ok(tenant.names().into_iter().map(quota).collect())
    }
}

impl Reconciler for Tenants {
    type Object = Tenant;

    async fn reconcile(&self, tenant: &Tenant, cx: &Context<Self>) -> Result {
        // Not `apply`: an error there would end the reconcile before the condition shows that
        // error.
        let children = TenantChildren::apply_each(self, tenant, cx).await;
        let condition = if children.all_ready() { met } else { unmet };
        cx.set_condition(condition("Ready", "Children", children.summary())).await?;
        children.action()
    }
}

/// Returns the operator, for `main` and for tests.
pub fn operator(client: Client) -> Manager {
    Manager::new(client).leader_election("tenant-operator").install::<Tenant>().controller(Tenants)
}

fn main() -> ExitCode {
    let spec = TenantSpec { namespaces: vec!["dev".into(), "prod".into()], pods: Some(10) };
    let app = windlass::cli::App::new(operator).package(windlass::package!());
    app.sample(Tenant::new("acme", spec)).main()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use windlass::api::Patch;
    use windlass::testing::{Case, Exploration, Table, TestCluster, World, check};

    use super::*;

    fn acme() -> Tenant {
        let spec = TenantSpec { namespaces: vec!["dev".into(), "prod".into()], pods: Some(10) };
        Tenant::new("acme", spec)
    }

    #[tokio::test]
    async fn cases_hold_without_a_server() {
        let namespace =
            |name| object!(Namespace { metadata: { name, labels: { tenant: "acme" } } });
        let quota = |namespace| object!(ResourceQuota { metadata: { name: "pods", namespace }, spec: { hard: { pods: "10" } } });
        let status =
            |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
        let cases = Table::new(operator)
            .case(
                Case::new("each namespace has a quota", &acme())
                    .creates(&namespace("acme-dev"))
                    .creates(&namespace("acme-prod"))
                    .creates(&quota("acme-dev"))
                    .creates(&quota("acme-prod"))
                    .status(status("True")),
            )
            .case(
                Case::new("the namespace of somebody else is left alone", &acme())
                    .given(&object!(Namespace { metadata: { name: "acme-dev" } }))
                    .creates(&namespace("acme-prod"))
                    .status(status("False"))
                    .fails("an object of this name exists"),
            );
        cases.check().await;
    }

    #[tokio::test]
    async fn a_tenant_has_the_namespaces_of_its_list_and_no_others() {
        // Namespaces are the whole cluster's: on a shared server operators of tests see their own.
        let cluster = TestCluster::builder().embedded().start().await;
        cluster.install::<Tenant>().await;
        let running = cluster.spawn(operator(cluster.client()));
        let tenants = cluster.client().all::<Tenant>();
        let namespaces = cluster.client().all::<Namespace>();
        let quotas = cluster.client().all::<ResourceQuota>();
        let names = async || {
            let found = namespaces.list().labels("tenant=acme").await.unwrap().items;
            found.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>()
        };
        tenants.create(&acme()).await.unwrap();
        running.settled().await;
        assert_eq!(names().await, ["acme-dev", "acme-prod"]);
        let limits = quotas
            .list()
            .await
            .unwrap()
            .items
            .into_iter()
            .map(|quota| quota.spec.unwrap().hard.unwrap().remove("pods").unwrap().0);
        assert_eq!(limits.collect::<Vec<_>>(), ["10", "10"]);

        let patch = Patch::Merge(json!({ "spec": { "namespaces": ["prod", "test"] } }));
        tenants.patch("acme", patch).await.unwrap();
        running.settled().await;
        assert_eq!(names().await, ["acme-prod", "acme-test"]);
        assert_eq!(quotas.list().await.unwrap().items.len(), 2);

        let patch = Patch::Merge(json!({ "spec": { "pods": null } }));
        tenants.patch("acme", patch).await.unwrap();
        running.settled().await;
        assert!(quotas.list().await.unwrap().items.is_empty());
        let tenant = tenants.get("acme").await.unwrap();
        assert!(tenant.status.unwrap().conditions.is_met("Ready"));
        running.stop().await;
    }

    #[test]
    fn a_tenant_has_what_its_list_names_whatever_fails() {
        let budget = Duration::from_secs(10);
        let report = Exploration::new().runs(60).budget(budget).run(|world| async move {
            world.install::<Tenant>().await;
            world.operator(operator);
            let names = |world: &World| {
                let all = world.objects::<Namespace>();
                let own = all.iter().filter(|it| it.name().starts_with("acme-"));
                own.map(|it| it.name().to_owned()).collect::<Vec<_>>()
            };
            let tenants = world.client().all::<Tenant>();
            tenants.create(&acme()).await.unwrap();
            let has_both = async || names(&world).len() == 2;
            world.eventually("both namespaces are there", has_both).await;
            let patch = json!({ "spec": { "namespaces": ["prod", "test"], "pods": 20 } });
            tenants.patch("acme", Patch::Merge(patch)).await.unwrap();
            let is_changed = async || names(&world) == ["acme-prod", "acme-test"];
            world.eventually("the namespaces are those of the new list", is_changed).await;
            let patch = Patch::Merge(json!({ "spec": { "pods": null } }));
            tenants.patch("acme", patch).await.unwrap();
            let is_free = async || world.objects::<ResourceQuota>().is_empty();
            world.eventually("there is no limit", is_free).await;
            tenants.delete("acme").await.unwrap();
            world.eventually("all is gone", async || names(&world).is_empty()).await;
        });
        assert!(report.findings().is_empty(), "{report}");
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<Tenant>().await;
        assert!(report.unchecked().is_empty(), "{report}");
    }
}
