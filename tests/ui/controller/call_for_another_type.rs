use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Secret), can(get list Pod))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let _pod: Secret = cx.get::<Pod>("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
