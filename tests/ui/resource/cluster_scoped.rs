use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", cluster_scoped)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
    pub status: Option<Status>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub replicas: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Status {
    pub replicas: i32,
}

fn main() {}
