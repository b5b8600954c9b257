use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub field: Vec<Inner<Port>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inner<T> {
    pub inner: T,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Port {
    pub number: i32,
}

fn main() {}
