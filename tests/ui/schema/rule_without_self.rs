use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(rule("low <= high"))]
pub struct Spec {
    pub low: i32,
    pub high: i32,
}

fn main() {}
