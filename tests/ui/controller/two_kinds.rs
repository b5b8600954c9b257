use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap, for = Secret)]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
