use serde::{Deserialize, Serialize};
use windlass::Schema;

/// A volume of one kind.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(tag = "type")]
struct VolumeSpec {
    size: String,
}

fn main() {}
