use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Vec<String>,
    pub status: Option<Status>,
}

#[derive(Clone, Debug)]
pub struct Status {
    pub ready: bool,
}

fn main() {}
