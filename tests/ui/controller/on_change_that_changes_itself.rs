use k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap, on_change(data = retitle))]
struct Maps;

impl Maps {
    async fn retitle(&mut self, _: &ConfigMap, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
