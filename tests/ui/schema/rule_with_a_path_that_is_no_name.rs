use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(rule("self.field > 0", path = .field))]
pub struct Spec {
    pub field: i32,
}

fn main() {}
