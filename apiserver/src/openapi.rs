//! Stand-in: OpenAPI documents.
use serde_json::{Value, json};

use crate::served::Served;

/// Index of documents.
pub fn v3_index(_served: &[Served]) -> Value {
    json!({"paths": {}})
}

/// One document.
pub fn v3_document(_served: &[Served], _group: &str, _version: &str) -> Option<Value> {
    None
}
