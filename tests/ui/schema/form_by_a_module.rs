use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(with = "seconds")]
    pub field: std::time::Duration,
}

mod seconds {
    use std::time::Duration;

    pub(crate) fn serialize<S: serde::Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(value.as_secs())
    }

    pub(crate) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        serde::Deserialize::deserialize(from).map(Duration::from_secs)
    }
}

fn main() {}
