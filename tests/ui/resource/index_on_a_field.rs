use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    #[index(by_host)]
    pub spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub host: String,
}

fn main() {}
