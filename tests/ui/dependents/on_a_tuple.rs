use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Dependents;
use windlass::prelude::*;

#[derive(Dependents)]
#[dependents(by = Maps)]
struct Children(Deployment);

#[derive(Controller)]
#[controller(for = ConfigMap)]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
