use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(alias = "size")]
    pub count: i32,
    pub size: i32,
}

fn main() {}
