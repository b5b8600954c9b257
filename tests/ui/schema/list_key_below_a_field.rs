use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list(map, keys(metadata.name)))]
    pub hosts: Vec<Spec>,
}

fn main() {}
