use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(rule("self.host != ''", path = cached_size))]
pub struct Spec {
    pub host: String,
    #[serde(skip)]
    pub cached_size: u32,
}

fn main() {}
