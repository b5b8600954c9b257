use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(each(format = "double"))]
    pub counts: Vec<String>,
}

fn main() {}
