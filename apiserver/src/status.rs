//! Failures in kube-apiserver's words: code, reason, message, details.
//!
//! Clients branch on these fields, so each case has a single constructor here and no handler writes
//! a Status by hand. Successes are ordinary objects and are made elsewhere.

mod details;

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::details::{Details, MOST_CAUSES};
pub(crate) use self::details::{
    cause, duplicate, forbidden_field, invalid_value, required, unsupported,
};
use crate::go;
use crate::served::{Cause, Served};

/// A failed request. Becomes a `Status` object (or plain text) and headers.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError(Box<StatusContents>);

/// Contents of a failure.
#[derive(Clone, Debug, Default, PartialEq)]
struct StatusContents {
    code: u16,
    reason: Cow<'static, str>,
    message: String,
    details: Option<Details>,
    /// Fresh token for a list whose token has expired.
    continue_token: Option<String>,
    retry_after: Option<u64>,
    /// Warnings beside the failure.
    warnings: Vec<String>,
    /// Whether the answer is plain text instead of a Status.
    plain: bool,
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.0.code, self.0.reason, self.0.message)
    }
}

impl std::error::Error for ApiError {}

/// Subject of a failure, named by the `details`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailureSubject<'a> {
    /// API group.
    pub(crate) group: &'a str,
    /// Plural resource or kind, depending on the failure.
    pub(crate) kind: &'a str,
    /// Name of the object.
    pub(crate) name: &'a str,
}

impl<'a> FailureSubject<'a> {
    /// Returns a subject named by plural resource: for lookups and conflicts.
    pub(crate) fn resource(served: &'a Served, name: &'a str) -> Self {
        Self { group: &served.group, kind: &served.plural, name }
    }

    /// Returns a subject named by kind: for invalid objects.
    pub(crate) fn kind(served: &'a Served, name: &'a str) -> Self {
        Self { group: &served.group, kind: &served.kind, name }
    }

    /// Returns `kind.group`, or the kind alone for the core group.
    fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.kind.to_owned()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// Returns details that name the subject, without causes.
    fn details(&self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.kind.to_owned(),
            ..Details::default()
        }
    }
}

impl ApiError {
    /// Returns a failure without details.
    fn of(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let reason = Cow::Borrowed(reason);
        Self(Box::new(StatusContents {
            code,
            reason,
            message: message.into(),
            ..StatusContents::default()
        }))
    }

    /// Sets the details.
    fn detailed(mut self, details: Details) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Asks the client to wait, in the `Retry-After` header and in the details.
    fn after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self.0.details.get_or_insert_default().retry_after = Some(seconds);
        self
    }

    /// Returns the HTTP status code.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// Returns the reason; empty for unclassified failures.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns the message, a text for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the causes in the details.
    pub(crate) fn causes(&self) -> &[Cause] {
        self.0.details.as_ref().map_or(&[], |details| &details.causes)
    }

    /// Returns the value of the `Retry-After` header, in seconds.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.0.retry_after
    }

    /// Whether the answer is plain text instead of a Status.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.plain
    }

    /// Returns a failure with any code and reason, a message and no details.
    pub(crate) fn custom(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(code, reason, message)
    }

    /// 404: the object does not exist.
    pub(crate) fn not_found(about: FailureSubject<'_>) -> Self {
        let message = format!("{} {} not found", about.qualified(), go::quote(about.name));
        Self::of(404, "NotFound", message).detailed(about.details())
    }

    /// 404: the resource does not exist.
    pub(crate) fn no_resource() -> Self {
        Self::of(404, "NotFound", "the server could not find the requested resource")
            .detailed(Details::default())
    }

    /// 404 as plain text: the path does not exist.
    pub(crate) fn no_path() -> Self {
        let mut error = Self::of(404, "", "404 page not found\n");
        // The router's own answer, which is no Status.
        error.0.plain = true;
        error
    }

    /// 503 as plain text: no server answers for the group.
    pub(crate) fn no_service() -> Self {
        let mut error = Self::of(503, "", "service unavailable\n");
        error.0.plain = true;
        error
    }

    /// 405: the router knows the path but not the method.
    pub(crate) fn method() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self::of(405, "MethodNotAllowed", text).detailed(Details::default())
    }

    /// 405: a custom resource's handler does not know the verb.
    pub(crate) fn verb(verb: &str, served: &Served) -> Self {
        let about = FailureSubject::resource(served, "");
        let text = format!("{verb} is not supported on resources of kind {:?}", about.qualified());
        Self::of(405, "MethodNotAllowed", text).detailed(about.details())
    }

    /// 409: the name is taken; `terminating` if the existing object is being deleted.
    pub(crate) fn already_exists(about: FailureSubject<'_>, terminating: bool) -> Self {
        let prefix = if terminating { "object is being deleted: " } else { "" };
        let message =
            format!("{prefix}{} {} already exists", about.qualified(), go::quote(about.name));
        Self::of(409, "AlreadyExists", message).detailed(about.details())
    }

    /// Adds that no unique name could be generated; for objects with both `name` and
    /// `generateName`.
    pub(crate) fn not_generated(mut self) -> Self {
        self.0
            .message
            .push_str(", the server was not able to generate a unique name for the object");
        self.after(1)
    }

    /// 409: eight generated names were taken.
    pub(crate) fn no_unique_name(about: FailureSubject<'_>) -> Self {
        let message = format!(
            "{} {:?} already exists, the server was not able to generate a unique name for the object",
            about.qualified(),
            about.name
        );
        Self::of(409, "AlreadyExists", message).detailed(about.details()).after(1)
    }

    /// 409: another client wrote first, or a precondition failed.
    pub(crate) fn conflict(about: FailureSubject<'_>, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {}: {why}",
            about.qualified(),
            go::quote(about.name)
        );
        Self::of(409, "Conflict", message).detailed(about.details())
    }

    /// 409: the resourceVersion is not current.
    pub(crate) fn modified(about: FailureSubject<'_>) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(about, why)
    }

    /// 409: an apply conflicts with other managers.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::of(409, "Conflict", message).detailed(Details { causes, ..Details::default() })
    }

    /// 422: the object breaks rules; the message shows each cause once.
    pub(crate) fn invalid(about: FailureSubject<'_>, causes: Vec<Cause>) -> Self {
        let mut causes = causes;
        causes.truncate(MOST_CAUSES);
        // The causes keep duplicates, as upstream reports them; only the message is shortened.
        let mut known = BTreeSet::new();
        let texts = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message));
        let shown: Vec<String> = texts.filter(|text| known.insert(text.clone())).collect();
        let list = match shown.as_slice() {
            // Go's text for an error without causes.
            [] => "<nil>".to_owned(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {} is invalid: {list}", about.qualified(), go::quote(about.name));
        Self::of(422, "Invalid", message).detailed(Details { causes, ..about.details() })
    }

    /// 422: request options break rules.
    pub(crate) fn invalid_options(kind: &str, causes: Vec<Cause>) -> Self {
        Self::invalid(FailureSubject { group: "meta.k8s.io", kind, name: "" }, causes)
    }

    /// 422 of the router, for patches that do not apply.
    pub(crate) fn unprocessable() -> Self {
        let text = "the server rejected our request due to an error in our request";
        Self::of(422, "Invalid", text).detailed(Details::default())
    }

    /// 400: the request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::of(400, "BadRequest", message)
    }

    /// 403: an operation on an object is not allowed.
    pub(crate) fn forbidden(about: FailureSubject<'_>, why: &str) -> Self {
        let subject = if about.name.is_empty() {
            format!("{} is forbidden: {why}", about.qualified())
        } else {
            format!("{} {} is forbidden: {why}", about.qualified(), go::quote(about.name))
        };
        Self::of(403, "Forbidden", subject).detailed(about.details())
    }

    /// An admission policy refuses the request, with a code and a reason that the policy chooses.
    pub(crate) fn denied(about: FailureSubject<'_>, code: u16, reason: &str, why: &str) -> Self {
        let mut error = Self::forbidden(about, why).because(cause("", "", why));
        error.0.code = code;
        error.0.reason = Cow::Borrowed(match reason {
            "Unauthorized" => "Unauthorized",
            "Forbidden" => "Forbidden",
            "RequestEntityTooLarge" => "RequestEntityTooLarge",
            _ => "Invalid",
        });
        error
    }

    /// Mutating admission policies refuse the request; the first of them is the message.
    pub(crate) fn refused_by_policies(
        about: FailureSubject<'_>,
        reason: &'static str,
        messages: &[String],
    ) -> Self {
        let mut error = Self::forbidden(about, "");
        for message in messages {
            error = error.because(cause("", "", message));
        }
        error.0.message = messages.first().cloned().unwrap_or_default();
        error.0.reason = Cow::Borrowed(reason);
        error
    }

    /// An admission webhook refuses the request with a custom Status.
    pub(crate) fn rejected(code: u16, status: &Value, message: String) -> Self {
        let reason = status["reason"].as_str().unwrap_or_default().to_owned();
        let mut error = Self::of(code, "", message);
        error.0.reason = Cow::Owned(reason);
        error.0.details = Details::of(&status["details"]);
        error
    }

    /// The request waits for webhooks: no answer, but the sign that the verb has to run again. This
    /// value never reaches a client.
    pub(crate) fn suspended() -> Self {
        Self::internal("the request waits for a webhook")
    }

    /// 504: the request took longer than permitted, or than its own limit (`is_own`).
    pub(crate) fn deadline(is_own: bool) -> Self {
        let why = if is_own {
            "request did not complete within the allotted timeout"
        } else {
            "request did not complete within requested timeout - context deadline exceeded"
        };
        Self::of(504, "Timeout", format!("Timeout: {why}")).detailed(Details::default())
    }

    /// Adds warnings that are sent beside the failure.
    pub(crate) fn warned(mut self, warnings: Vec<String>) -> Self {
        self.0.warnings.extend(warnings);
        self
    }

    /// Returns the warnings beside the failure.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// 403: a request for a path is not allowed.
    pub(crate) fn forbidden_path(why: &str) -> Self {
        Self::of(403, "Forbidden", format!("forbidden: {why}")).detailed(Details::default())
    }

    /// Adds a cause to the details.
    pub(crate) fn because(mut self, cause: Cause) -> Self {
        self.0.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// 401: the request has no valid credentials.
    pub(crate) fn unauthorized() -> Self {
        Self::of(401, "Unauthorized", "Unauthorized")
    }

    /// 500 without a reason: a failure that kube-apiserver did not classify.
    pub(crate) fn unclassified(message: impl Into<String>) -> Self {
        Self::of(500, "", message)
    }

    /// 500 with reason `InternalError`; the message is repeated as a cause.
    pub(crate) fn internal(message: &str) -> Self {
        Self::of(500, "InternalError", format!("Internal error occurred: {message}"))
            .detailed(Details { causes: vec![cause("", "", message)], ..Details::default() })
    }

    /// 415: the server does not read the body's media type.
    pub(crate) fn unsupported_body(accepted: &[&str]) -> Self {
        let text = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::of(415, "UnsupportedMediaType", text)
    }

    /// 415 of the router.
    pub(crate) fn unsupported_by_router() -> Self {
        Self::of(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .detailed(Details::default())
    }

    /// 406: the client accepts nothing that the server writes.
    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        let text = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::of(406, "NotAcceptable", text)
    }

    /// 406 of the router.
    pub(crate) fn not_acceptable_by_router(available: &[&str]) -> Self {
        let text =
            format!("406: Not Acceptable\n\nAvailable representations: {}", available.join(", "));
        Self::of(406, "NotAcceptable", text).detailed(Details::default())
    }

    /// 413: the body is too long.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::of(413, "RequestEntityTooLarge", message)
    }

    /// 410: the history no longer reaches back that far.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::of(410, "Expired", message)
    }

    /// 410 for a continue token, with a fresh token.
    pub(crate) fn expired_token(fresh: String) -> Self {
        let text = "The provided continue parameter is too old to display a consistent list result. You \
can start a new list without the continue parameter, or use the continue token in this response to \
retrieve the remainder of the results. Continuing with the provided token results in an inconsistent \
list - objects that were created, modified, or deleted between the time the first chunk was returned \
and now may show up in the list.";
        let mut error = Self::of(410, "Expired", text);
        error.0.continue_token = Some(fresh);
        error
    }

    /// 504: the requested version lies in the future.
    pub(crate) fn future_version(asked: u64, current: u64) -> Self {
        let text = format!("Too large resource version: {asked}, current: {current}");
        let causes = vec![cause("ResourceVersionTooLarge", "", "Too large resource version")];
        Self::of(504, "Timeout", format!("Timeout: {text}"))
            .detailed(Details { causes, ..Details::default() })
            .after(1)
    }

    /// 429: the client is asked to wait `seconds`.
    pub(crate) fn too_many(message: &str, seconds: u64) -> Self {
        Self::of(429, "TooManyRequests", message).detailed(Details::default()).after(seconds)
    }

    /// Returns the Status object.
    pub fn body(&self) -> Value {
        let failure = &*self.0;
        let mut metadata = Map::new();
        if let Some(token) = &failure.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": metadata,
            "status": "Failure", "message": failure.message, "code": failure.code,
        });
        if !failure.reason.is_empty() {
            status["reason"] = json!(failure.reason);
        }
        if let Some(details) = &failure.details {
            status["details"] = details.json();
        }
        status
    }
}

/// Returns the Status of a success, the answer to DELETE.
pub(crate) fn deleted(served: &Served, name: &str, uid: &str) -> Value {
    let mut details = json!({"name": name, "kind": served.plural, "uid": uid});
    if !served.group.is_empty() {
        details["group"] = json!(served.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// Returns the Status of an accepted action, the answer to binding and eviction.
pub(crate) fn accepted() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: FailureSubject<'static> =
        FailureSubject { group: "g.io", kind: "Widget", name: "a" };

    #[test]
    fn an_invalid_object_lists_each_text_once_but_every_cause() {
        let twice =
            vec![required("spec.a", ""), required("spec.a", ""), required("spec.b", "set it")];
        let body = ApiError::invalid(WIDGET, twice).body();
        assert_eq!(
            body["message"],
            "Widget.g.io \"a\" is invalid: [spec.a: Required value, spec.b: Required value: set it]"
        );
        assert_eq!(body["details"]["causes"].as_array().map(Vec::len), Some(3));
        assert_eq!(body["details"]["kind"], "Widget");
    }

    #[test]
    fn a_future_version_says_when_to_retry_in_header_and_body() {
        let error = ApiError::future_version(9, 4);
        assert_eq!(error.retry_after(), Some(1));
        assert_eq!(error.body()["details"]["retryAfterSeconds"], 1);
        assert_eq!(error.body()["message"], "Timeout: Too large resource version: 9, current: 4");
    }

    #[test]
    fn unclassified_failures_have_no_reason() {
        let body = ApiError::unclassified("boom").body();
        assert_eq!(body.get("reason"), None);
        assert_eq!(body["code"], 500);
    }
}
