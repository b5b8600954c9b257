use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can([get, list] Pod))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.get::<Pod>("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
