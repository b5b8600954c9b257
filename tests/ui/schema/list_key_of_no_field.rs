use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list(map, keys(nme)))]
    pub ports: Vec<Port>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Port {
    pub name: String,
}

fn main() {}
