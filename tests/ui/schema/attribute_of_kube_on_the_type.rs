use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[kube(validation = "self.host != ''")]
pub struct Spec {
    pub host: String,
}

fn main() {}
