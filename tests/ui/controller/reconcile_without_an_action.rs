use k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap)]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn main() {}
