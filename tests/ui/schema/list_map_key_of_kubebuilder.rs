use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list_map_key = "name")]
    pub hosts: Vec<String>,
}

fn main() {}
