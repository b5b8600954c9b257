use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(deny_unknown_fields)]
#[schema(preserve)]
pub struct Spec {
    pub host: String,
}

fn main() {}
