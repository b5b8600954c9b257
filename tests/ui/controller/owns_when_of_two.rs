use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Pod, Service, when = labels_changed()))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
