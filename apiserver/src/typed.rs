//! Stand-in: field types of kinds.
use std::sync::Arc;

use serde_json::Value;

/// Field types of one kind.
#[derive(Clone, Debug, Default)]
pub struct TypeSchema {
    _private: (),
}

impl TypeSchema {
    /// Of a built-in kind.
    pub fn builtin(_api_version: &str, _kind: &str) -> Option<Arc<TypeSchema>> {
        None
    }
    /// Of a custom kind.
    pub fn from_openapi(_schema: &Value) -> TypeSchema {
        Self::default()
    }
    /// Nothing known.
    pub fn untyped() -> TypeSchema {
        Self::default()
    }
    /// Drops unknown fields and names them.
    pub fn drop_unknown(&self, _value: &mut Value) -> Vec<String> {
        Vec::new()
    }
    /// Brings a built-in object into its written form.
    pub fn canonicalize(&self, value: &mut Value) {
        crate::kinds::defaults::strip_nulls(value);
    }
}
