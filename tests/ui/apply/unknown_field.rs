//! A field that the type does not have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::ApplyConfiguration;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Spec {
    host: String,
}

fn main() {
    let _ = SpecApply::new().hots("a");
}
