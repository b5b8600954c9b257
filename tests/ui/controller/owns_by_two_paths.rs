use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::{core, events};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Secret, core::v1::Event, events::v1::Event, core::v1::Secret))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        cx.apply_owned(Secret::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
