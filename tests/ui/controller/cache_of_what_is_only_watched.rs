use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};
use windlass::resource::ObjectKey;
use windlass::store::Cached;

#[derive(Controller)]
#[controller(for = ConfigMap, watches(Secret, by = maps_of), can(watch Node))]
struct Maps;

fn maps_of(_: &Cached<Secret>) -> Vec<ObjectKey> {
    Vec::new()
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        cx.store_of::<Secret>();
        cx.watched::<Pod>();
        cx.watched::<Node>();
        cx.apply_owned(Secret::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
