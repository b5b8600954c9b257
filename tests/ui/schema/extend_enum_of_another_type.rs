use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("enum" = ["small", 2]))]
    pub size: String,
}

fn main() {}
