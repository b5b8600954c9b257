use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(extend("required" = ["port"]))]
pub struct Spec {
    pub host: String,
    pub port: Option<u16>,
}

fn main() {}
