use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};
use windlass::resource::ObjectKey;
use windlass::store::Cached;

type Credentials = Secret;

fn of_secret(_: &Cached<Secret>) -> Vec<ObjectKey> {
    Vec::new()
}

#[derive(Controller)]
#[controller(for = ConfigMap, watches(Secret, by = of_secret), can(get Credentials))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
        cx.get::<Secret>("a").await?;
        Ok(Action::done())
    }
}

fn main() {}
