use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(column(name = "Host", jsonPath = ".spec.host"))]
    pub host: String,
}

fn main() {}
