use serde::{Deserialize, Serialize};
use windlass::path;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub host: String,
}

fn main() {
    let _ = path!(Spec: hots);
}
