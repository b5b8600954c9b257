use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(into = "i64")]
pub struct Size(String);

impl From<Size> for i64 {
    fn from(size: Size) -> Self {
        size.0.len() as Self
    }
}

fn main() {}
