use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(rule("self.min_size <= self.maxSize"))]
pub struct Spec {
    pub min_size: i32,
    pub max_size: i32,
}

fn main() {}
