use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

#[derive(Clone, Debug)]
pub struct Spec {
    pub host: String,
}

fn main() {}
