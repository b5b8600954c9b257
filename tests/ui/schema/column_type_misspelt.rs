use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(column("Since", type = "timestamp"))]
    pub since: String,
}

fn main() {}
