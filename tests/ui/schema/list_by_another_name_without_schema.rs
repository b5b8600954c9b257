use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub field: List<Foreign>,
}

type List<T> = Vec<T>;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Foreign {
    pub field: i32,
}

fn main() {}
