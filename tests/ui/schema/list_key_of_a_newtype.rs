use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Port {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Ports(#[schema(list(map, keys(nmae)))] Vec<Port>);

fn main() {}
