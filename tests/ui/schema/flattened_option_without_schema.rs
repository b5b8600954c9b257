use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Foreign {
    pub host: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[serde(flatten)]
    pub foreign: Option<Foreign>,
}

fn main() {}
