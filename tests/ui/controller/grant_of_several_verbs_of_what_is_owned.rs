use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Pod), can(list watch patch Pod))]
struct Maps;

fn owners(_: &windlass::store::Cached<Pod>) -> Vec<windlass::resource::ObjectKey> {
    Vec::new()
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Action> {
        let _ = owners;
        Ok(Action::done())
    }
}

fn main() {}
