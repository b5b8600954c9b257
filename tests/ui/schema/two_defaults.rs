use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(default = "four")]
    #[schema(default = 3)]
    pub count: u8,
}

fn four() -> u8 {
    4
}

fn main() {}
