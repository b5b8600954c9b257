use serde::{Deserialize, Serialize};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, Schema)]
#[kube(group = "example.dev", version = "v1", kind = "Website", namespaced)]
pub struct WebsiteSpec {
    pub host: String,
}

// No other error may follow, for example of the impls of serde.
fn main() {}
