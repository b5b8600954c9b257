use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Namespace};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, watches(Endpoints, by = maps_of))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn maps_of(_: &windlass::store::Cached<Namespace>) -> Vec<windlass::resource::ObjectKey> {
    Vec::new()
}

fn main() {}
