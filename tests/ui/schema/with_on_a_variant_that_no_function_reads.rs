use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub enum Stop {
    #[schema(with = String)]
    Never,
    After {
        #[schema(min = 1)]
        seconds: i32,
    },
}

fn main() {}
