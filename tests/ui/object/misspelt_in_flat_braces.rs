//! A misspelt name in braces that could have been a map.

use k8s_openapi::api::apps::v1::Deployment;
use windlass::object;

fn main() {
    let _ = object!(Deployment { spec: { strategy: { typ: "Recreate" } } });
}
