use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Mode {
    #[serde(alias = "Slow")]
    Fast,
    Slow,
}

fn main() {}
