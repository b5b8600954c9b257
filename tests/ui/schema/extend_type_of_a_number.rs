use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("type" = "string"))]
    pub replicas: i32,
}

fn main() {}
