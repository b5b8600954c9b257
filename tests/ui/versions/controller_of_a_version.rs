use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::controller::{Action, Context, Reconciler, Result};
use windlass::{Controller, Convertible, CustomResource, Schema};

mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced, versions(v1beta1::Website))]
    pub struct Website {
        pub metadata: ObjectMeta,
        pub spec: Spec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub struct Spec {
        pub host: String,
        pub tier: Tier,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub enum Tier {
        Free,
        Paid,
    }
}

mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Website)]
    pub struct Website {
        pub metadata: ObjectMeta,
        pub spec: Spec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::Spec)]
    pub struct Spec {
        pub host: String,
        pub tier: v1::Tier,
    }
}

#[derive(Controller)]
#[controller(for = v1beta1::Website)]
struct Sites;

impl Reconciler for Sites {
    type Object = v1beta1::Website;

    async fn reconcile(&self, _: &v1beta1::Website, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
