use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub field: Option<Vec<Foreign>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Foreign {
    pub field: i32,
}

fn main() {}
