use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(deserialize_with = "of_text")]
    pub count: u8,
}

fn of_text<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
}

fn main() {}
