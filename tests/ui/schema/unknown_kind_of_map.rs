use serde::{Deserialize, Serialize};
use windlass::Schema;

use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(map(granullar))]
    pub field: BTreeMap<String, String>,
}

fn main() {}
