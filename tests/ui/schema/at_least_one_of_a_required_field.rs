use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(at_least_one_of(host, path))]
pub struct Spec {
    pub host: String,
    pub path: Option<String>,
}

fn main() {}
