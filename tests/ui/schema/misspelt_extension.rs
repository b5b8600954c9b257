use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("x-kubernetes-listtype" = "set"))]
    pub field: Vec<String>,
}

fn main() {}
