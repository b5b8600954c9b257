use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(rule("self != ''", optional_old_self))]
    pub host: String,
}

fn main() {}
