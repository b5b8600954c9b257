use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(serialize_with = "as_text")]
    pub size: i32,
}

fn as_text<S: serde::Serializer>(size: &i32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&size.to_string())
}

fn main() {}
