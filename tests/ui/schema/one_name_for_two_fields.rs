use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub my_field: i32,
    #[serde(rename = "myField")]
    pub other: i32,
}

fn main() {}
