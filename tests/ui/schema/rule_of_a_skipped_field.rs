use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(rule("self.cachedSize < 10"))]
pub struct Spec {
    pub host: String,
    #[serde(skip)]
    pub cached_size: u32,
}

fn main() {}
