use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(properties(max = 3))]
    pub field: Vec<String>,
}

fn main() {}
