use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(at_most_one_of(by_name, count))]
pub struct Spec {
    pub by_name: Option<String>,
    pub by_label: Option<String>,
    pub count: i32,
}

fn main() {}
