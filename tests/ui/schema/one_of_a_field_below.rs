use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(one_of(a.deep, b))]
pub struct Spec {
    pub a: Option<String>,
    pub b: Option<String>,
}

fn main() {}
