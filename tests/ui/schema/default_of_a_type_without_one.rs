use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(default)]
    pub size: Size,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Size {
    pub cores: i32,
}

fn main() {}
