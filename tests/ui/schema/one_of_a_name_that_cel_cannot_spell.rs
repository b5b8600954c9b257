use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(one_of(first, second))]
pub struct Spec {
    #[serde(rename = "first host")]
    pub first: Option<String>,
    pub second: Option<String>,
}

fn main() {}
