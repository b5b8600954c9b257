use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Schema)]
pub struct Spec {
    pub host: String,
}

fn main() {}
