use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    /// The ports.
    /// +k8s:immutable
    pub ports: Vec<i32>,
}

fn main() {}
