use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(range(min = 9, max = 1))]
    pub field: i32,
}

fn main() {}
