//! JSON patches, JSON merge patches and strategic merge patches, as kube-apiserver applies them.
//!
//! All of them are pure functions from a document and a patch to a document. The quirks of the real
//! server are kept, since clients rely on some of them. Server-side apply is in [`crate::apply`];
//! decoding and validating the result are the caller's task.

mod json;
mod lists;
mod merge;
mod strategic;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use crate::typed::TypeSchema;

/// Failure of a patch: the fields of the Status to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// HTTP status code.
    pub code: u16,
    /// Reason of the Status; empty for an unclassified failure, which has none.
    pub reason: &'static str,
    /// Message of the Status.
    pub message: String,
}

impl PatchError {
    /// Returns a 400.
    fn bad_request(message: impl Into<String>) -> PatchError {
        PatchError { code: 400, reason: "BadRequest", message: message.into() }
    }

    /// Returns the server's answer to a patch that cannot be applied, without a reason.
    fn rejected() -> PatchError {
        PatchError {
            code: 422,
            reason: "Invalid",
            message: "the server rejected our request due to an error in our request".to_owned(),
        }
    }

    /// Returns a 500 without a reason, with which upstream reports bad directives.
    fn internal(message: impl Into<String>) -> PatchError {
        PatchError { code: 500, reason: "", message: message.into() }
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PatchError {}

/// Applies a JSON patch (RFC 6902).
///
/// Like the real server, and beyond the RFC: replacing a missing key adds the key, copying a
/// missing key writes null, `add` without a value adds null, indices may be negative, and the text
/// before the first slash of a path is ignored.
///
/// # Errors
///
/// 400 if `ops` is not a list of operations, 413 for more than 10000 of them, 422 if an operation
/// cannot be executed. The message of the last is the server's, which does not name the operation.
pub fn json(doc: &Value, ops: &Value) -> Result<Value, PatchError> {
    json::apply(doc, ops)
}

/// Applies the JSON patch of an admission webhook.
///
/// # Errors
///
/// The text of the library that kube-apiserver uses, which is shown only for webhooks.
pub(crate) fn json_with_reason(doc: &Value, ops: &Value) -> Result<Value, String> {
    json::apply_with_reason(doc, ops)
}

/// Checks that a document may be a merge patch.
///
/// # Errors
///
/// 400 unless the patch is an object (or a list, which the real server accepts).
pub fn check_merge(patch: &Value) -> Result<(), PatchError> {
    match patch {
        Value::Object(_) | Value::Array(_) => Ok(()),
        _ => Err(PatchError::bad_request("Invalid JSON Patch")),
    }
}

/// Applies a JSON merge patch (RFC 7386): null removes a key, lists are replaced.
pub fn merge(doc: &Value, patch: &Value) -> Value {
    merge::apply(doc, patch)
}

/// Applies a strategic merge patch.
///
/// Lists merge by the merge keys of the type, and the directives `$patch`, `$retainKeys`,
/// `$setElementOrder/…` and `$deleteFromPrimitiveList/…` are executed.
///
/// # Errors
///
/// 400 if the patch is not an object; 500, as kube-apiserver answers, for directives that make no
/// sense and list items without their merge key.
pub fn strategic(schema: &TypeSchema, doc: &Value, patch: &Value) -> Result<Value, PatchError> {
    strategic::apply(schema, doc, patch)
}
