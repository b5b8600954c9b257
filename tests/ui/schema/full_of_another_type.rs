use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(full)]
    pub size: Size,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Size {
    pub width: i32,
}

fn main() {}
