use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};
use windlass::rbac::CanGet;

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Pod))]
struct Maps;

async fn secret<C: Reconciler + CanGet<Secret>>(cx: &Context<C>) -> Result<Secret> {
    Ok(cx.get("a").await?)
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let _secret = secret(cx).await?;
        Ok(Action::done())
    }
}

fn main() {}
