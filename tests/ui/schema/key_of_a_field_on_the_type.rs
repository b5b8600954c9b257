use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(pattern = "^a")]
pub struct Spec {
    pub field: String,
}

fn main() {}
