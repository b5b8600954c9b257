use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    #[x_kube(validation = "self != ''")]
    pub host: String,
}

fn main() {}
