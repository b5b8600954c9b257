use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Service))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.delete_owned::<Pod>("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
