use serde::{Deserialize, Serialize};
use windlass::ApplyConfiguration;

#[derive(ApplyConfiguration, Serialize, Deserialize, Clone, Debug)]
#[apply(crate = nonexistent)]
pub struct WebsiteSpec {
    host: String,
    replicas: Option<i32>,
}

fn main() {}
