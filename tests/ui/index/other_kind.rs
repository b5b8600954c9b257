use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[index(by_host = spec.host)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    pub host: String,
    pub replicas: i32,
    pub names: Vec<String>,
}

fn main() {
    let _pods: windlass::store::Index<k8s_openapi::api::core::v1::Pod, String> = Website::BY_HOST;
    let _number: windlass::store::Index<Website, i32> = Website::BY_HOST;
}
