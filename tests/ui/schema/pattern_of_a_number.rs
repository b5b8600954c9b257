use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(pattern = "^[0-9]+$")]
    pub field: i32,
}

fn main() {}
