use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(default)]
pub struct Size {
    pub cores: i32,
    pub memory: String,
}

fn main() {}
