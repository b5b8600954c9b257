use k8s_openapi::api::core::v1::{ConfigMap, ConfigMap as Settings, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Secret), owns(Settings))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.apply_owned(Secret::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
