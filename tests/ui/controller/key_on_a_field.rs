use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap)]
struct Maps {
    #[controller(workers = 2)]
    _limit: usize,
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
