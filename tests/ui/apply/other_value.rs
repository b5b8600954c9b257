//! A value of another type in an apply configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::ApplyConfiguration;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Spec {
    host: String,
    replicas: Option<i32>,
}

fn main() {
    let _ = SpecApply::new().host("a").replicas("3");
}
