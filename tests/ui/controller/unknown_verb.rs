use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Service), can(gett Pod, apply Secret))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

// The readable part is granted in spite of the fault.
fn main() {
    fn takes<C: windlass::controller::Controller + windlass::rbac::Owns<Service>>() {}
    takes::<Maps>();
}
