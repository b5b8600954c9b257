use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(flatten)]
    pub hosts: Vec<String>,
}

fn main() {}
