use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(one_of(a, count), rule("self.cuont > 0"))]
pub struct Spec {
    #[schema(pattern = "(?=a)", min = 1)]
    pub a: Option<String>,
    #[schema(lengt(max = 1))]
    pub count: i32,
}

fn main() {}
