use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Secret))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let child = Secret::default();
        cx.apply_owned(Some(child)).await?;
        Ok(Action::done())
    }
}

fn main() {}
