use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Mode {
    Fast,
    #[serde(rename = "Fast")]
    Slow,
}

fn main() {}
