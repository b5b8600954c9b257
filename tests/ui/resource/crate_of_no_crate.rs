use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, column("Host", spec.host), crate = nonexistent)]
pub struct Website {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: WebsiteSpec,
}

#[derive(Schema, Serialize, Deserialize, Clone, Debug)]
pub struct WebsiteSpec {
    host: String,
}

fn main() {}
