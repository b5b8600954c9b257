use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::Dependents;
use windlass::prelude::*;

#[derive(Dependents)]
#[dependents(by = Maps)]
struct Front {
    config: Secret,
}

#[derive(Dependents)]
#[dependents(by = Maps)]
struct Back {
    key: Secret,
    app: Deployment,
}

#[derive(Controller)]
#[controller(for = ConfigMap, dependents(Front, Back))]
struct Maps;

impl DesiredFront for Maps {
    async fn config(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Secret> {
        Ok(Secret::default())
    }
}

impl DesiredBack for Maps {
    async fn key(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Secret> {
        Ok(Secret::default())
    }

    async fn app(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Deployment> {
        Ok(Deployment::default())
    }
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.apply_owned(Secret::default()).await?;
        cx.apply_owned(Deployment::default()).await?;
        Front::apply(self, map, cx).await?;
        Back::apply(self, map, cx).await?.action()
    }
}

fn main() {}
