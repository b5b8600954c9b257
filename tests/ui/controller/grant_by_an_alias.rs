use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

type Credentials = Secret;

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Pod, get delete Secret, get Credentials))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.get::<Secret>("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
