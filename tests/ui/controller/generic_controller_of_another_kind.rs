use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use windlass::prelude::*;

#[derive(Controller)]
#[controller(for = Pod)]
struct Maps<T: Send + Sync + 'static>(T);

impl<T: Send + Sync + 'static> Reconciler for Maps<T> {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
