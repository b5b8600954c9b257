//! Stand-in: patches.
use serde_json::Value;

use crate::typed::TypeSchema;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// HTTP status.
    pub code: u16,
    /// Status reason.
    pub reason: &'static str,
    /// Text.
    pub message: String,
}

/// JSON patch.
pub fn json(doc: &Value, ops: &Value) -> Result<Value, PatchError> {
    let refuse = |message: String| PatchError { code: 422, reason: "Invalid", message };
    let patch: json_patch::Patch =
        serde_json::from_value(ops.clone()).map_err(|why| refuse(why.to_string()))?;
    let mut out = doc.clone();
    json_patch::patch(&mut out, &patch).map_err(|why| refuse(why.to_string()))?;
    Ok(out)
}

/// JSON merge patch.
pub fn merge(doc: &Value, patch: &Value) -> Value {
    let mut out = doc.clone();
    json_patch::merge(&mut out, patch);
    out
}

/// Strategic merge patch.
pub fn strategic(_schema: &TypeSchema, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    Ok(merge(doc, patch))
}
