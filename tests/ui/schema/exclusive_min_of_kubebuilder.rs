use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(min = 0, exclusive_min = true)]
    pub size: i32,
}

fn main() {}
