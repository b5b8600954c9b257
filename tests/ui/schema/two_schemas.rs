use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(opaque, embedded)]
    pub field: serde_json::Value,
}

fn main() {}
