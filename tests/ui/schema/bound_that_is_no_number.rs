use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(min = f64::NAN)]
    pub field: f64,
}

fn main() {}
