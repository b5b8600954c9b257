use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

type App = Deployment;

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Deployment, App))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.apply_owned(App::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
