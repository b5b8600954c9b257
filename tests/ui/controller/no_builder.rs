use k8s_openapi::api::core::v1::ConfigMap;
use windlass::prelude::*;

struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn manager(client: Client) -> Manager {
    Manager::new(client).controller(Maps)
}

fn main() {}
