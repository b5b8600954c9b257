use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(one_off(a, b))]
pub struct Spec {
    pub a: Option<i32>,
    pub b: Option<i32>,
}

fn main() {}
