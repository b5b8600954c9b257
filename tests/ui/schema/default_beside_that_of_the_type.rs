use serde::{Deserialize, Serialize};
use windlass::Schema;

/// Settings of the cache.
#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(default)]
struct CacheSpec {
    /// Size in MiB.
    #[schema(default = 64)]
    size: i32,
}

impl Default for CacheSpec {
    fn default() -> Self {
        Self { size: 32 }
    }
}

fn main() {}
