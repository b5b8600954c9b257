use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Http {
    pub port: u16,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(tag = "kind")]
pub enum Probe {
    Http(Option<Http>),
}

fn main() {}
