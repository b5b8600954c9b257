use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(skip)]
    #[schema(skip, column)]
    pub host: String,
}

fn main() {}
