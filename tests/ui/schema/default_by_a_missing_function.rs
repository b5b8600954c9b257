use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(default = "thre")]
    pub size: i32,
}

fn three() -> i32 {
    3
}

fn main() {}
