use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use windlass::Controller;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(Controller)]
#[controller(for = ConfigMap, owns(Service), can(get Pod))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn main() {
    use windlass::rbac::{Can, Owns, verbs};
    fn may<C: Can<V, K>, V: verbs::VerbType, K>() {}
    fn owns<C: Owns<K>, K>() {}
    may::<Maps, verbs::Get, Pod>();
    may::<Maps, verbs::Delete, Pod>();
    owns::<Maps, Service>();
    owns::<Maps, Deployment>();
}
