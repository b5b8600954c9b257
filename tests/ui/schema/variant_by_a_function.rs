use std::time::Duration;

use serde::{Deserialize, Serialize};
use windlass::Schema;

mod whole_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_secs())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Stop {
    #[serde(with = "whole_seconds")]
    After(Duration),
    Never,
}

fn main() {}
