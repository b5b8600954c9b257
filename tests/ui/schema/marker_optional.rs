use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    /// The ports.
    /// +optional
    pub ports: Vec<i32>,
}

fn main() {}
