use serde::{Deserialize, Serialize};
use windlass::path;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub tls: Option<Box<Tls>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tls {
    pub secret_name: Option<String>,
}

fn main() {
    let _ = path!(Spec: tls.secret_nam);
}
