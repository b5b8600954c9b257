use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(pattern = "^[a-z+$")]
    pub host: String,
}

fn main() {}
