use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[resource(rename_all = "camelCase")]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: WebsiteSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
pub struct WebsiteSpec {
    pub host: String,
}

fn main() {}
