use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Source {
    #[schema(rule("self.size > 0"))]
    Git { size: i32 },
    None,
}

fn main() {}
