use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[index(by_mode: Mode = spec.mode)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    pub host: String,
    pub mode: Mode,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Mode(String);

fn main() {}
