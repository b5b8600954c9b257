use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can(list Pod))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        if let Some(pod) = cx.get_opt::<Pod>("a").await? {
            drop(pod);
        }
        Ok(Action::done())
    }
}

fn main() {}
