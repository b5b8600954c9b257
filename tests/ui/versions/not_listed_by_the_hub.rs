use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{Convertible, CustomResource, Schema};

mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced)]
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

fn main() {}
