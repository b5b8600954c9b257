//! The API server's description of an error: `kind: Status`.
//!
//! Every field has a default, and `null` counts as the default: proxies and aggregated servers send
//! incomplete bodies, and a Status that does not decode would hide the code.

use serde::{Deserialize, Deserializer, Serialize};

/// The body of a Kubernetes error answer (`kind: Status`).
///
/// A success has this form too: the answer to a deletion is `status: Success`.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::error::ApiStatus;
///
/// let text = r#"{"code": 403, "reason": "Forbidden",
///     "details": {"name": "shop", "causes": [{"reason": "NamespaceTerminating"}]}}"#;
/// let status: ApiStatus = serde_json::from_str(text)?;
/// assert!(status.has_cause("NamespaceTerminating"));
/// assert_eq!(status.details.map(|details| details.name).as_deref(), Some("shop"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiStatus {
    /// `Success` or `Failure`.
    pub status: String,
    /// Text for people; programs decide by the reason.
    pub message: String,
    /// Machine-readable reason, such as `NotFound`; empty when the server gave none.
    pub reason: String,
    /// HTTP status code.
    pub code: u16,
    /// The object that the error is about, and the causes.
    ///
    /// `None` for answers that are no Status of Kubernetes, such as the text of a proxy.
    pub details: Option<StatusDetails>,
    /// The token with which an expired list can continue.
    #[serde(deserialize_with = "or_default")]
    pub metadata: StatusMetadata,
}

/// `metadata` of a Status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusMetadata {
    /// With 410 on a page of a list: a token that continues after the last page, at today's
    /// version. Empty when the server gave none.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
}

/// `details` of a Status.
///
/// Texts are empty where the server sends none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// Kind or plural resource, as printed by the server.
    pub kind: String,
    /// Uid of the object.
    pub uid: String,
    /// An entry per fault.
    #[serde(deserialize_with = "or_default")]
    pub causes: Vec<StatusCause>,
    /// Time that the server asks to wait, in seconds; 0 when the server gives none.
    pub retry_after_seconds: u64,
}

/// A cause of a Status.
///
/// A field of an invalid object, or an owned field of a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCause {
    /// Machine-readable type of the cause (`metav1.CauseType`), such as `FieldValueInvalid`.
    pub reason: String,
    /// Text for people; programs decide by the reason.
    pub message: String,
    /// JSON path of the field.
    pub field: String,
}

/// Reads `null` as the default, so that a single odd field does not make the whole Status
/// undecodable.
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

    /// Whether there is a cause with this reason, such as `NamespaceTerminating`.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.causes().iter().any(|cause| cause.reason == reason)
    }

    /// Whether `reason` is the reason. If the server gave none that Kubernetes knows, the HTTP code
    /// decides.
    pub(crate) fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || (self.code == code && !REASONS.contains(&self.reason.as_str()))
    }
}

/// Reasons that Kubernetes knows (`metav1.StatusReason`). The HTTP code decides the meaning of an
/// error only beside another reason, or none.
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
