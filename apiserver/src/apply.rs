//! Stand-in: server-side apply.
use serde_json::Value;

use crate::typed::TypeSchema;

/// What to apply.
#[derive(Clone, Copy, Debug)]
pub struct ApplyRequest<'a> {
    /// Types.
    pub schema: &'a TypeSchema,
    /// Present object.
    pub live: Option<&'a Value>,
    /// What is wanted.
    pub intent: &'a Value,
    /// Field manager.
    pub manager: &'a str,
    /// Take over conflicts.
    pub force: bool,
    /// Version of the intent.
    pub api_version: &'a str,
    /// Subresource.
    pub subresource: Option<&'a str>,
    /// RFC 3339.
    pub now: &'a str,
}

/// A field somebody else manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Text.
    pub message: String,
    /// Field path.
    pub field: String,
}

/// Why apply failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Fields of other managers.
    Conflicts(Vec<Conflict>),
    /// Not applicable.
    Invalid {
        /// HTTP status.
        code: u16,
        /// Status reason.
        reason: &'static str,
        /// Text.
        message: String,
    },
}

/// Applies an intent.
pub fn apply(request: ApplyRequest<'_>) -> Result<Value, ApplyError> {
    Ok(match request.live {
        Some(live) => crate::patch::merge(live, request.intent),
        None => request.intent.clone(),
    })
}

/// Records who changed what.
pub fn track_update(
    _schema: &TypeSchema,
    _old: Option<&Value>,
    new: &Value,
    _manager: &str,
    _api_version: &str,
    _subresource: Option<&str>,
    _now: &str,
) -> Value {
    new.clone()
}
