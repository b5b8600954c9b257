//! `#[apply(…)]` has no keys for a field.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::ApplyConfiguration;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
pub struct Part {
    #[apply(skip)]
    pub host: String,
}

fn main() {}
