use k8s_openapi::api::core;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, watches(Secret, by = |_| Vec::new()))]
#[controller(can(create core::v1::Secret, get core::v1::Secret))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        cx.create(&Secret::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
