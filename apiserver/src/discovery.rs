//! Stand-in: discovery documents.
use serde_json::{Value, json};

use crate::served::Served;

/// `/api`.
pub fn api_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"]})
}
/// `/apis`.
pub fn group_list(_served: &[Served]) -> Value {
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []})
}
/// `/apis/{group}`.
pub fn group(_served: &[Served], _group: &str) -> Option<Value> {
    None
}
/// `/apis/{group}/{version}`.
pub fn resource_list(_served: &[Served], _group: &str, _version: &str) -> Option<Value> {
    None
}
/// Aggregated.
pub fn aggregated(_served: &[Served], _core: bool) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": []})
}
