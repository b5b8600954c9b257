use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

const GROUP: i32 = 1;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = GROUP, version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    pub host: String,
}

// No other error may follow: the resource is usable in spite of the fault.
fn main() {
    fn takes<K: windlass::resource::Resource + windlass::crd::CustomResource>() {}
    takes::<Website>();
}
