use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(length(min = 1, equal = 2))]
    pub host: String,
}

fn main() {}
