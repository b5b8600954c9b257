use serde::{Deserialize, Serialize};
use windlass::{ApplyConfiguration, Schema};

#[derive(Clone, Debug, Serialize, Deserialize, Schema, ApplyConfiguration)]
pub struct Spec {
    #[apply(skip)]
    pub host: Option<String>,
}

fn main() {}
