use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::Dependents;
use windlass::prelude::*;

#[derive(Dependents)]
#[dependents(by = Maps)]
struct Children {
    config: Secret,
    app: Deployment,
}

#[derive(Controller)]
#[controller(for = ConfigMap)]
struct Maps;

impl DesiredChildren for Maps {
    async fn config(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Secret> {
        Ok(Secret::default())
    }

    async fn app(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Deployment> {
        Ok(Deployment::default())
    }
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        Children::apply(self, map, cx).await?.action()
    }
}

fn main() {}
