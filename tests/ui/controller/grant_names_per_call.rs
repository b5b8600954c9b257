use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Secret["tls"]))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        let _all: Vec<Secret> = cx.list(&windlass::resource::Selector::everything()).await?;
        Ok(Action::done())
    }
}

fn main() {}
