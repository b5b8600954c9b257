use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("items" = { "type": "integer", "maximum": 63 }))]
    pub hosts: Vec<String>,
}

fn main() {}
