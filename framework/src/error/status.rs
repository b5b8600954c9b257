//! The API server's own words about an error: `kind: Status`.

use serde::{Deserialize, Deserializer, Serialize};

/// The body of a Kubernetes error answer (`kind: Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiStatus {
    /// `Success` or `Failure`.
    pub status: String,
    /// The API server's text.
    pub message: String,
    /// Machine-readable reason, such as `NotFound`; empty when the server gave none.
    pub reason: String,
    /// HTTP status code.
    pub code: u16,
    /// What the error is about.
    pub details: Option<StatusDetails>,
    /// How a list that came too late can go on.
    #[serde(deserialize_with = "or_default")]
    pub metadata: StatusMetadata,
}

/// `metadata` of a Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusMetadata {
    /// With 410 on a page of a list: a token that goes on after the last page, at today's version.
    /// Empty when the server gave none.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
}

/// `details` of a Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// Kind or plural resource, as the server prints it.
    pub kind: String,
    /// Uid of the object.
    pub uid: String,
    /// One entry per fault.
    #[serde(deserialize_with = "or_default")]
    pub causes: Vec<StatusCause>,
    /// How long the server asks to wait, in seconds; 0 when it does not.
    pub retry_after_seconds: u64,
}

/// One cause of a Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCause {
    /// Machine-readable type of the cause.
    pub reason: String,
    /// Text.
    pub message: String,
    /// JSON path of the field.
    pub field: String,
}

/// `null` as nothing: one odd field must not make a stranger's text of a Status.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl ApiStatus {
    /// The causes; empty when the server gave none.
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| &details.causes)
    }

    /// Is there a cause of this reason, such as `NamespaceTerminating`?
    pub fn has_cause(&self, reason: &str) -> bool {
        self.causes().iter().any(|cause| cause.reason == reason)
    }

    /// Is `reason` the reason? Where the server gave none that Kubernetes knows, the HTTP code decides.
    pub(crate) fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || (self.code == code && !REASONS.contains(&self.reason.as_str()))
    }
}

/// Reasons that Kubernetes knows (`metav1.StatusReason`). Only beside another one, or none, does the
/// HTTP code say what an error means.
const REASONS: &[&str] = &[
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];
