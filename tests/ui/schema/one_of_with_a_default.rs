use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(one_of(a, b))]
pub struct Spec {
    #[serde(default)]
    pub a: Vec<String>,
    pub b: Option<String>,
}

fn main() {}
