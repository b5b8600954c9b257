use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(flatten)]
    #[schema(title = "Inner")]
    pub inner: Inner,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Inner {
    pub field: i32,
}

fn main() {}
