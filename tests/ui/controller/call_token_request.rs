use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can(create ServiceAccount))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let token = cx.checked::<ServiceAccount>().token_request("a").await?;
        drop(token);
        Ok(Action::done())
    }
}

fn main() {}
