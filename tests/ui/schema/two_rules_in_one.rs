use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(rule("self > 0", "self < 9"))]
    pub replicas: i32,
}

fn main() {}
