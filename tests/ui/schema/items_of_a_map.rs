use serde::{Deserialize, Serialize};
use windlass::Schema;

use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(items(max = 3))]
    pub field: BTreeMap<String, String>,
}

fn main() {}
