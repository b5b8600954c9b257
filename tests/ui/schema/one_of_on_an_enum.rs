use serde::{Deserialize, Serialize};
use windlass::Schema;

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(one_of(A, B))]
pub enum Source {
    A,
    B,
}

fn main() {}
