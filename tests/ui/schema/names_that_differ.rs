use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(rename(serialize = "a", deserialize = "b"))]
    pub field: i32,
}

fn main() {}
