use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(at_most_one_of(a, b))]
pub struct Spec {
    #[schema(skip)]
    pub a: Option<String>,
    pub b: Option<String>,
}

fn main() {}
