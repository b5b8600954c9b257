use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(x_validation(rule = "self > 0"))]
    pub count: i32,
}

fn main() {}
