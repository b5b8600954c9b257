use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(rule("self.name != ''", path = "name"))]
    pub field: Port,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Port {
    pub name: String,
}

fn main() {}
