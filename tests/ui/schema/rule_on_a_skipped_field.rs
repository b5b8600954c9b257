use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub host: String,
    #[serde(skip)]
    #[schema(rule("self < 10"))]
    pub cached_size: u32,
}

fn main() {}
