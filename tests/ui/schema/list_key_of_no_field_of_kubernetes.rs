use serde::{Deserialize, Serialize};
use windlass::Schema;

use k8s_openapi::api::core::v1::ContainerPort;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list(map, keys(nme)))]
    pub ports: Option<Vec<ContainerPort>>,
}

fn main() {}
