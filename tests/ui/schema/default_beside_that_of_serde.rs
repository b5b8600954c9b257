use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(default)]
    #[schema(default = 3)]
    pub count: i32,
    #[serde(default)]
    #[schema(default = 0)]
    pub zero: i32,
}

fn main() {}
