use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[resource(scale())]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    pub status: Option<Status>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    pub host: String,
    pub replicas: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    pub replicas: i32,
    pub selector: String,
}

// No other error may follow: the resource is usable in spite of the fault.
fn main() {
    fn takes<K: windlass::resource::Resource + windlass::crd::CustomResource>() {}
    takes::<Website>();
}
