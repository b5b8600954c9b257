use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Pod))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let log = cx.checked::<Pod>().log("a").tail(10).text().await?;
        drop(log);
        Ok(Action::done())
    }
}

fn main() {}
