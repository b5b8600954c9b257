use serde::{Deserialize, Serialize};
use windlass::Schema;

use std::collections::BTreeMap;

type Ports = BTreeMap<String, Port>;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Port {
    name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list(map, keys(name)))]
    pub ports: Ports,
}

fn main() {}
