//! Keys of the controller stand above the struct.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap)]
struct Maps {
    #[controller(workers = 2)]
    prefix: String,
}

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result {
        let _ = &self.prefix;
        Ok(Action::done())
    }
}

fn main() {}
