use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Secret))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "a" } });
        cx.apply_owned(secret).await?;
        Ok(Action::done())
    }
}

fn main() {}
