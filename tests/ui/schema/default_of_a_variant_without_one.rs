use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    Git {
        #[serde(default)]
        size: Size,
    },
    Image(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Size {
    pub cores: i32,
}

fn main() {}
