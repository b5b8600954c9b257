use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(extend("type" = "string"))]
pub struct Spec {
    pub host: String,
}

fn main() {}
