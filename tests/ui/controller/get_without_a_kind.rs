use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Pod, get Service))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        let _found = cx.get("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
