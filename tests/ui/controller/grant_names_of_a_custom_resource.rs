use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::controller::{Action, Context, Reconciler, Result};
use windlass::{Controller, CustomResource, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub host: String,
}

#[derive(Controller)]
#[controller(for = ConfigMap, can(get Website["home", "Shop Page"]))]
struct Maps;

impl Reconciler for Maps {
    type Object = ConfigMap;

    async fn reconcile(&self, _: &ConfigMap, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

fn main() {}
