use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(max = 1000)]
    pub field: u8,
}

fn main() {}
