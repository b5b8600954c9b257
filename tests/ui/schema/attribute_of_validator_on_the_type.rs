use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[validate(schema(function = "is_ordered"))]
pub struct Spec {
    pub least: i32,
    pub most: i32,
}

fn main() {}
