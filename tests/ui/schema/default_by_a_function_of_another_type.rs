use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(default = "three")]
    pub size: i32,
}

fn three() -> String {
    "3".to_owned()
}

fn main() {}
