use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Pair(i32, #[serde(skip_deserializing)] i32);

fn main() {}
