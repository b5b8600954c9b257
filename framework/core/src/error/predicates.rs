//! Predicates of an error. Most read the API server's reason, as client-go's `apierrors` does.
//!
//! A predicate about a reason holds for every [kind](Error::kind): a write that was answered with
//! 504 is both [ambiguous](Error::is_ambiguous) and a [timeout](Error::is_timeout).
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use windlass::error::{ApiStatus, Error};
//!
//! let text = r#"{"code": 504, "reason": "Timeout", "message": "etcd is slow"}"#;
//! let error = Error::from_status("get pods", serde_json::from_str::<ApiStatus>(text)?);
//! assert!(error.is_timeout() && !error.is_server_timeout());
//! assert_eq!((error.code(), error.reason()), (Some(504), "Timeout"));
//! # Ok::<(), serde_json::Error>(())
//! ```

use super::{ApiStatus, Error, ErrorKind, StatusCause};

/// Cause of a 403 on a creation in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// The namespace that made a request fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingNamespace<'a> {
    /// The namespace's name, if the answer contains it.
    #[doc(hidden)]
    pub name: Option<&'a str>,
    /// Whether the namespace does not exist; otherwise it is being deleted.
    #[doc(hidden)]
    pub is_missing: bool,
}

impl Error {
    /// Whether the API server answered with this reason, or with this code and no known reason.
    fn answered(&self, reason: &str, code: u16) -> bool {
        self.status().is_some_and(|status| status.is(reason, code))
    }

    /// The API server's machine-readable reason, such as `NotFound`; empty if there is none.
    ///
    /// The spelling of `metav1.StatusReason`. A reason that this crate does not know is returned
    /// unchanged.
    pub fn reason(&self) -> &str {
        self.status().map_or("", |status| &status.reason)
    }

    /// The HTTP code of the API server's answer, when the server answered.
    ///
    /// `None` for errors of the client.
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// The causes that the API server named; empty without any.
    ///
    /// A cause per wrong field for an invalid object, a cause per foreign field for a conflict of
    /// an apply.
    pub fn causes(&self) -> &[StatusCause] {
        self.status().map_or(&[], ApiStatus::causes)
    }

    /// Whether the API server named a cause with this reason, such as `FieldValueInvalid`.
    ///
    /// client-go's `HasStatusCause`.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.has_cause(reason))
    }

    /// Causes of an [invalid](Self::is_invalid) object that name a field.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use windlass::error::{ApiStatus, Error};
    ///
    /// let text = r#"{"code": 422, "reason": "Invalid", "details": {"causes": [
    ///     {"reason": "FieldValueInvalid", "field": "spec.replicas", "message": "too small"}]}}"#;
    /// let error = Error::from_status("create websites", serde_json::from_str::<ApiStatus>(text)?);
    /// assert!(error.is_invalid());
    /// let fields: Vec<&str> = error.field_errors().map(|cause| cause.field.as_str()).collect();
    /// assert_eq!(fields, ["spec.replicas"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn field_errors(&self) -> impl Iterator<Item = &StatusCause> {
        self.causes().iter().filter(|cause| {
            // The API server prints `<nil>` for a fault without a field.
            cause.reason.starts_with("FieldValue") && !matches!(cause.field.as_str(), "" | "<nil>")
        })
    }

    /// 404: the object, or the namespace, kind or path, does not exist.
    ///
    /// A deletion that fails so is usually done.
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// 409 on a creation: an object of that name exists.
    ///
    /// Kept apart from [`is_conflict`](Self::is_conflict), which has the same code.
    pub fn is_already_exists(&self) -> bool {
        self.kind() == ErrorKind::AlreadyExists
    }

    /// 409: another writer was first, a precondition failed, or (for an apply) another manager owns
    /// a field.
    ///
    /// Read the object again and repeat the change; `retry_on_conflict` of the client does both. A
    /// conflict about ownership ([`is_field_conflict`](Self::is_field_conflict)) does not pass
    /// without a change of the request.
    pub fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    /// A [conflict](Self::is_conflict) of an apply: other managers own fields; the
    /// [causes](Self::causes) name them. Trying again does not help; forcing does.
    pub fn is_field_conflict(&self) -> bool {
        self.is_conflict() && self.has_cause("FieldManagerConflict")
    }

    /// 422: the API server refused the object's content; see [`field_errors`](Self::field_errors).
    pub fn is_invalid(&self) -> bool {
        self.kind() == ErrorKind::Invalid
    }

    /// 400: the request makes no sense to the API server.
    pub fn is_bad_request(&self) -> bool {
        self.kind() == ErrorKind::BadRequest
    }

    /// 410, of either reason: the resourceVersion or continue token is too old; list again.
    ///
    /// client-go separates `IsResourceExpired` and `IsGone`; servers use both reasons for the same
    /// situation.
    pub fn is_expired(&self) -> bool {
        self.kind() == ErrorKind::Expired
    }

    /// 410 with the reason `Gone`, or with none: the requested item no longer exists. Most callers
    /// mean [`is_expired`](Self::is_expired), which includes this.
    pub fn is_gone(&self) -> bool {
        self.answered("Gone", 410)
    }

    /// 401: credentials are missing or refused.
    pub fn is_unauthorized(&self) -> bool {
        self.kind() == ErrorKind::Unauthorized
    }

    /// 403: not allowed, by RBAC or by admission.
    pub fn is_forbidden(&self) -> bool {
        self.kind() == ErrorKind::Forbidden
    }

    /// A deadline passed: the client's (nothing was written), or the API server's (504, reason
    /// `Timeout`).
    ///
    /// A write that the server answered with 504 may have been executed, and is
    /// [ambiguous](Self::is_ambiguous) as well.
    pub fn is_timeout(&self) -> bool {
        self.kind() == ErrorKind::Timeout || self.answered("Timeout", 504)
    }

    /// Reason `ServerTimeout`: the API server could not finish in time, and asks for another try.
    ///
    /// [`retry_after`](Self::retry_after) has the wait for which the server asks.
    pub fn is_server_timeout(&self) -> bool {
        self.reason() == "ServerTimeout"
    }

    /// 429: the server asks to slow down; the disruption budget of an eviction leads to 429 as
    /// well.
    ///
    /// The client waits and tries again before this error reaches the caller; an eviction is
    /// returned at once.
    pub fn is_too_many_requests(&self) -> bool {
        self.kind() == ErrorKind::TooManyRequests || self.answered("TooManyRequests", 429)
    }

    /// An eviction that a disruption budget does not allow now: try again later.
    pub fn is_disruption_budget(&self) -> bool {
        self.is_too_many_requests() && self.has_cause("DisruptionBudget")
    }

    /// 503: the API server, or a server behind the API server, cannot serve now.
    pub fn is_service_unavailable(&self) -> bool {
        self.answered("ServiceUnavailable", 503)
    }

    /// 500: the API server failed; the reason is `InternalError` or missing.
    pub fn is_internal(&self) -> bool {
        self.answered("InternalError", 500)
    }

    /// 405: the resource does not take this verb.
    pub fn is_method_not_supported(&self) -> bool {
        self.answered("MethodNotAllowed", 405)
    }

    /// 406: the server has the answer in none of the accepted formats.
    pub fn is_not_acceptable(&self) -> bool {
        self.answered("NotAcceptable", 406)
    }

    /// 415: the server does not read this format; custom resources take no strategic merge patch.
    pub fn is_unsupported_media_type(&self) -> bool {
        self.answered("UnsupportedMediaType", 415)
    }

    /// 413: the request is larger than the API server reads.
    pub fn is_request_entity_too_large(&self) -> bool {
        self.answered("RequestEntityTooLarge", 413)
    }

    /// A write whose fate is unknown: read the object before trying again. An apply may be sent
    /// again without a read. [`uncertain_write`](Self::uncertain_write) has the request.
    ///
    /// Deletions by uid and replaces at a version may be sent again without a read, too: a second
    /// execution is refused.
    pub fn is_ambiguous(&self) -> bool {
        self.kind() == ErrorKind::Ambiguous
    }

    /// A creation that came too late: the namespace is being deleted (403 with that cause).
    ///
    /// Not a fault of the controller: the controller's objects go with the namespace.
    pub fn namespace_terminating(&self) -> bool {
        self.is_forbidden() && self.has_cause(NAMESPACE_TERMINATING)
    }

    /// Returns the namespace that made the request fail: the namespace is being deleted, or does
    /// not exist.
    #[doc(hidden)]
    pub fn missing_namespace(&self) -> Option<MissingNamespace<'_>> {
        let details = self.status()?.details.as_ref()?;
        if self.namespace_terminating() {
            let cause =
                details.causes.iter().find(|cause| cause.reason == NAMESPACE_TERMINATING)?;
            // The name is only in the text of the cause; a server with another wording leaves
            // `None`.
            let name = cause.message.strip_prefix("namespace ");
            let name = name.and_then(|rest| rest.strip_suffix(" is being terminated"));
            return Some(MissingNamespace { name, is_missing: false });
        }
        let is_missing = self.is_not_found() && details.kind == "namespaces";
        is_missing.then_some(MissingNamespace { name: Some(&details.name), is_missing })
    }

    /// 404, and the API server names the object as missing, by the plural or the name of the kind:
    /// not the namespace, the kind or a path.
    ///
    /// API servers may give the same answer for a subresource when the object exists without the
    /// subresource.
    #[doc(hidden)]
    pub fn is_missing(&self, kind: [&str; 2], name: &str) -> bool {
        let Some(details) = self.status().and_then(|status| status.details.as_ref()) else {
            return false;
        };
        self.code() == Some(404) && details.name == name && kind.contains(&details.kind.as_str())
    }

    /// A read at a version that the server does not have yet (cause `ResourceVersionTooLarge`).
    ///
    /// A replica of the API server is behind the replica that returned the version; the same read
    /// succeeds a little later.
    pub fn is_version_too_large(&self) -> bool {
        self.has_cause("ResourceVersionTooLarge")
    }
}

#[cfg(test)]
mod tests;
