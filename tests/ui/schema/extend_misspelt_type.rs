use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("type" = "bool"))]
    pub is_on: Option<bool>,
}

fn main() {}
