use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Place {
    At(#[serde(skip_serializing_if = "Option::is_none")] Option<i32>, i32),
    Nowhere,
}

fn main() {}
