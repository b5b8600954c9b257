use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Secret))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        cx.apply_owned(Service::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
