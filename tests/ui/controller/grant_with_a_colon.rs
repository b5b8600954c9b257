use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can(Pod: get, list))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn main() {}
