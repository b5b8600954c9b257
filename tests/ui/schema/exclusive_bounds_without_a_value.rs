use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(exclusive_min = 3, exclusive_max = 4)]
    pub replicas: i32,
}

fn main() {}
