use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use windlass::Controller;
use windlass::api::ApiFuture;
use windlass::controller::{Action, Context, Reconciler, Result};
use windlass::rbac::CanGet;

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Pod))]
struct Maps;

fn secret<C: Reconciler + CanGet<Secret>>(cx: &Context<C>) -> ApiFuture<'_, Secret> {
    cx.get("a")
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let _secret = secret(cx).await?;
        Ok(Action::done())
    }
}

fn main() {}
