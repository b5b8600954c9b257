use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::Dependents;
use windlass::prelude::*;

#[derive(Dependents)]
#[dependents(by = Maps)]
struct Children {
    #[dependent(scope = namespaced)]
    config: ConfigMap,
}

#[derive(Controller)]
#[controller(for = Secret, dependents(Children))]
struct Maps;

impl DesiredChildren for Maps {
    async fn config(&self, _: &Secret, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(ConfigMap::default())
    }
}

impl Reconciler for Maps {
    type Object = Secret;

    async fn reconcile(&self, map: &Secret, cx: &Context<Self>) -> Result {
        Children::apply(self, map, cx).await?.action()
    }
}

fn main() {}
