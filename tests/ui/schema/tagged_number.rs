use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(tag = "kind")]
pub enum Probe {
    Http { port: u16 },
    Tcp(u16),
}

fn main() {}
