use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[schema(each(max = 256))]
    pub field: Vec<u8>,
}

fn main() {}
