use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(printcolumn(name = "Host"))]
    pub field: String,
}

fn main() {}
