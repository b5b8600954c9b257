use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, cluster = false)]
pub struct Website {
    metadata: ObjectMeta,
}

fn main() {}
