use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(each(length(min = 9, max = 1)))]
    pub hosts: Vec<String>,
}

fn main() {}
