use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("x-kubernetes-list-type" = "set"))]
    pub host: String,
}

fn main() {}
