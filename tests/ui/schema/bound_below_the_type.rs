use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(range(min = -5, max = 10))]
    pub field: Option<u16>,
}

fn main() {}
