use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(extend("format" = "date-time"))]
    pub seconds: i64,
}

fn main() {}
