use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(multiple_of = 0.5)]
    pub field: i32,
}

fn main() {}
