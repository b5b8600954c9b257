use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::Projection;

#[derive(Projection, Clone, Debug, Serialize, Deserialize)]
#[projection(of = Pod)]
pub struct View {
    pub metadata: ObjectMeta,
    #[projection(path = spec.node_name)]
    pub node: Option<String>,
}

fn main() {}
