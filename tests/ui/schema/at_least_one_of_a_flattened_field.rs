use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(at_least_one_of(a, b))]
pub struct Spec {
    #[serde(flatten)]
    pub a: Option<std::collections::BTreeMap<String, String>>,
    pub b: Option<String>,
}

fn main() {}
