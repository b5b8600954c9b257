use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Port {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list(map, keys(name), set))]
    pub ports: Vec<Port>,
}

fn main() {}
