use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(list(set, keys(name)))]
    pub hosts: Vec<String>,
}

fn main() {}
