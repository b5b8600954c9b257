use serde::{Deserialize, Serialize};
use windlass::{ApplyConfiguration, Schema};

#[derive(Clone, Debug, Serialize, Deserialize, Schema, ApplyConfiguration)]
pub struct Spec {
    pub size: Option<i64>,
}

fn main() {
    let size: Option<i64> = None;
    let _ = SpecApply::new().size(size);
}
