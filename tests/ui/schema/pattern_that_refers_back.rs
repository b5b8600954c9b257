use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(pattern = "^(a|b)\\1$")]
    pub field: String,
}

fn main() {}
