use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[garde(range(min = 1, max = 9))]
    pub field: i32,
}

fn main() {}
