use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, resync_period = "1h")]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
