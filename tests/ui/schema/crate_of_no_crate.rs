use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Schema, Serialize, Deserialize, Clone, Debug)]
#[schema(crate = nonexistent)]
pub struct WebsiteSpec {
    #[schema(length(min = 1))]
    host: String,
    replicas: Option<i32>,
}

fn main() {}
