use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(exactly_one_of(a, b))]
    pub a: Option<String>,
}

fn main() {}
