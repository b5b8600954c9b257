//! The error type of the framework.
//!
//! `Display` names the attempted operation, the object and the remedy, a single level; causes
//! follow through [`source`](std::error::Error::source). Callers decide by [`Error::kind`]; the API
//! server's answer is in [`Error::status`].
//!
//! | situation | kind | remedy |
//! |---|---|---|
//! | the object is not there | [`NotFound`](ErrorKind::NotFound) | create it, or treat it as done |
//! | the name is taken | [`AlreadyExists`](ErrorKind::AlreadyExists) | read the object and compare |
//! | another writer was first | [`Conflict`](ErrorKind::Conflict) | read, change, write again |
//! | the answer to a write was lost | [`Ambiguous`](ErrorKind::Ambiguous) | read, then decide; an apply may be repeated |
//! | the version is too old | [`Expired`](ErrorKind::Expired) | list again |
//! | the server is overloaded | [`TooManyRequests`](ErrorKind::TooManyRequests) | wait [`Error::retry_after`] |
//! | the request cannot be sent | [`Usage`](ErrorKind::Usage) | correct the program |
//!
//! The client tries again where that cannot do harm, so an error that reaches the caller comes
//! after these retries.

// DESIGN.md, 1: One opaque `Error` with a kind, and `Failure` for reconcilers

mod predicates;
mod status;

#[doc(hidden)]
pub use predicates::MissingNamespace;
pub use status::{ApiStatus, StatusCause, StatusDetails, StatusMetadata};

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;

/// A boxed cause.
///
/// Source of an error: that of a layer, of a codec or of I/O. [`Error::because`] takes it.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Category of an error, for callers to decide by.
///
/// Non-exhaustive: a `match` needs a last arm, and `Server` or `Other` is a good model for that
/// arm. The predicates of [`Error`], such as [`Error::is_not_found`], read better where a single
/// kind matters.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::error::{Error, ErrorKind};
///
/// fn is_worth_a_retry(error: &Error) -> bool {
///     matches!(
///         error.kind(),
///         ErrorKind::Connect | ErrorKind::Transport | ErrorKind::TooManyRequests
///     )
/// }
/// assert!(is_worth_a_retry(&Error::new(ErrorKind::Connect, "cannot reach the server")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 404: the object or the resource does not exist.
    ///
    /// A 404 that is about a path without a resource has this kind too.
    NotFound,
    /// 409 with reason `AlreadyExists`.
    ///
    /// The answer to a creation.
    AlreadyExists,
    /// 409: another writer was first, or a precondition failed.
    ///
    /// A replace at an older resourceVersion, a deletion with a wrong uid, or an apply of fields
    /// that another manager owns.
    Conflict,
    /// 422: the API server refused the object's content.
    ///
    /// [`Error::field_errors`] names the fields.
    Invalid,
    /// 400: the request makes no sense to the API server.
    ///
    /// Unknown fields under strict validation, and parameters that the server cannot parse.
    BadRequest,
    /// 401: credentials missing or refused.
    ///
    /// Credentials that can be refreshed (files, plugins) were refreshed once, and the call was
    /// tried again, before this reaches the caller.
    Unauthorized,
    /// 403: not allowed.
    ///
    /// By RBAC, by an admission plugin, or because the namespace is being deleted
    /// ([`Error::namespace_terminating`]).
    Forbidden,
    /// 410, or reason `Expired`: the resourceVersion or continue token is too old.
    ///
    /// The server's history reaches back about five minutes by default (etcd's compaction).
    Expired,
    /// 429: the server asked to slow down, until retries were used up.
    ///
    /// Priority and fairness, or the disruption budget of an eviction.
    TooManyRequests,
    /// 415 or 406: the server does not speak this format.
    ///
    /// A strategic merge patch of a custom resource is the usual cause.
    UnsupportedMediaType,
    /// Any other error answer of the API server.
    ///
    /// 5xx, 405, 413 and other codes; [`Error::code`] has the number.
    Server,
    /// A deadline passed; the request was certainly not executed, or only read.
    ///
    /// Safe to repeat: no write was executed.
    Timeout,
    /// A write may or may not have been executed: read before trying again.
    ///
    /// [`Error::uncertain_write`] has the request.
    Ambiguous,
    /// No connection: name lookup, TCP or TLS failed before anything was sent.
    ///
    /// Safe to repeat.
    Connect,
    /// The connection broke after the request was sent.
    ///
    /// Only reads and streams end so; a write that ends so is [`Ambiguous`](Self::Ambiguous).
    Transport,
    /// Bytes that do not decode into the requested type.
    ///
    /// The source describes the field.
    Decode,
    /// Configuration is missing or wrong.
    ///
    /// Kubeconfig, certificates, environment variables and settings of builders.
    Config,
    /// The caller passed something that cannot be sent.
    ///
    /// An empty name, a namespace that is missing, a wrong combination of settings. Nothing was
    /// sent.
    Usage,
    /// A write was refused here, because this process does not hold the lease.
    ///
    /// Nothing was sent.
    NotLeader,
    /// Cancelled, or shutting down.
    ///
    /// Not a fault: the caller should end without a report.
    Cancelled,
    /// Anything else.
    Other,
}

/// A write whose fate is unknown: the request as sent, and the destination.
///
/// `Debug` shows only the length of the body.
///
/// A program that must know reads the object at [`path`](Self::path) and compares the object with
/// [`body`](Self::body).
#[derive(Clone, PartialEq, Eq)]
pub struct UncertainWrite {
    /// HTTP method of the request that may have been executed.
    pub method: Method,
    /// The API server's host and port.
    pub host: String,
    /// Path below the server's address.
    pub path: String,
    /// Query as sent, without the question mark; empty for none.
    pub query: String,
    /// Content type of the body; empty for none.
    pub content_type: String,
    /// Body; empty when the body was streamed from a reader.
    pub body: Bytes,
}

impl fmt::Debug for UncertainWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UncertainWrite")
            .field("method", &self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("query", &self.query)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// An error of the framework: the attempted operation, the reason and the remedy.
///
/// The size is one pointer. `Display` is a line for people: operation, object, reason and remedy.
/// `Debug` adds the kind and all causes.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::error::{Error, ErrorKind};
///
/// let cause = std::io::Error::other("permission denied");
/// let error = Error::new(ErrorKind::Config, "cannot read token; check its mode").because(cause);
/// assert_eq!(error.to_string(), "cannot read token; check its mode");
/// assert_eq!(
///     format!("{error:?}"),
///     "Config: cannot read token; check its mode; caused by: permission denied"
/// );
/// ```
pub struct Error {
    /// All parts behind a pointer.
    inner: Box<Inner>,
}

/// Boxed, so that a `Result` stays small.
struct Inner {
    /// Kind, by which callers decide.
    kind: ErrorKind,
    /// Attempted operation, reason and remedy.
    message: String,
    /// The server's answer, if there was one.
    status: Option<ApiStatus>,
    /// From the header `Retry-After`, or from the Status.
    retry_after: Option<Duration>,
    /// Boxed once more: few errors have this part, which is large.
    uncertain_write: Option<Box<UncertainWrite>>,
    /// The grant whose absence the API server reported, in the spelling of `can(…)` of a
    /// controller.
    grant: Option<Box<str>>,
    /// Whether the API server refuses, for want of a right, what this error waited for.
    is_for_want_of_right: bool,
    /// The error that caused this one.
    source: Option<BoxError>,
}

impl Error {
    /// Creates an error of `kind` with a text that names the attempted operation and the remedy.
    ///
    /// The text should be complete: `cannot …: …; …`, in lower case and without a final full stop,
    /// because callers put the text behind prefixes.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                message: message.into(),
                status: None,
                retry_after: None,
                uncertain_write: None,
                grant: None,
                is_for_want_of_right: false,
                source: None,
            }),
        }
    }

    /// Creates an error about a call that cannot be sent ([`ErrorKind::Usage`]).
    #[doc(hidden)]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Adds the cause.
    ///
    /// The cause becomes the [`source`](std::error::Error::source), in place of an earlier cause.
    /// The text of the error is not changed.
    #[must_use]
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Creates an error from the API server's answer to `tried`, such as
    /// `get websites "home" in "shop"`.
    ///
    /// The kind follows from the reason where the reason decides (`AlreadyExists`, `Expired`,
    /// `Gone`), otherwise from the code. `details.retryAfterSeconds` becomes
    /// [`retry_after`](Self::retry_after).
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use windlass::error::{ApiStatus, Error};
    ///
    /// let status: ApiStatus = serde_json::from_str(
    ///     r#"{"code": 409, "reason": "AlreadyExists", "message": "it exists"}"#,
    /// )?;
    /// let error = Error::from_status("create pods", status);
    /// assert!(error.is_already_exists() && !error.is_conflict());
    /// assert_eq!(error.to_string(), "cannot create pods: it exists (409 AlreadyExists)");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn from_status(tried: &str, status: ApiStatus) -> Self {
        let mut error =
            Self::new(kind_of(&status), format!("cannot {tried}: {}", describe(&status)));
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        error.inner.retry_after = (seconds > 0).then(|| Duration::from_secs(seconds));
        error.inner.status = Some(status);
        error
    }

    /// Adds the time that the server asked to wait.
    ///
    /// `None` keeps the time of the Status.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        // A given time replaces the time of the Status.
        self.inner.retry_after = retry_after.or(self.inner.retry_after);
        self
    }

    /// Changes the kind, for callers that know more than the status code says.
    #[must_use]
    #[doc(hidden)]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.inner.kind = kind;
        self
    }

    /// Adds the request of a write whose fate is unknown.
    #[must_use]
    #[doc(hidden)]
    pub fn with_uncertain_write(mut self, write: UncertainWrite) -> Self {
        self.inner.uncertain_write = Some(Box::new(write));
        self
    }

    /// Adds the grant whose absence the API server reported, such as `create Pod/eviction`.
    #[must_use]
    #[doc(hidden)]
    pub fn with_missing_grant(mut self, grant: &str) -> Self {
        self.inner.grant = Some(grant.into());
        self
    }

    /// Returns the grant whose absence the API server reported.
    #[doc(hidden)]
    pub fn missing_grant(&self) -> Option<&str> {
        self.inner.grant.as_deref()
    }

    /// Marks an error without an answer of its own, of an operation for which another request was
    /// refused for want of a right. The kind alone is no mark: any program makes errors of it.
    #[must_use]
    #[doc(hidden)]
    pub fn for_want_of_right(mut self) -> Self {
        self.inner.is_for_want_of_right = true;
        self
    }

    /// Whether this error is marked by [`for_want_of_right`](Self::for_want_of_right).
    #[doc(hidden)]
    pub fn is_for_want_of_right(&self) -> bool {
        self.inner.is_for_want_of_right
    }

    /// Appends `; note` to the text.
    #[must_use]
    #[doc(hidden)]
    pub fn note(mut self, note: &str) -> Self {
        self.inner.message.push_str("; ");
        self.inner.message.push_str(note);
        self
    }

    /// Puts `preface: ` in front of the text.
    #[must_use]
    #[doc(hidden)]
    pub fn preface(mut self, preface: &str) -> Self {
        self.inner.message.insert_str(0, ": ");
        self.inner.message.insert_str(0, preface);
        self
    }

    /// Returns the category of the error.
    ///
    /// A kind says which treatment fits, not which code the server sent: see [`code`](Self::code)
    /// and [`reason`](Self::reason) for these.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the API server's answer, if there was one.
    ///
    /// `None` for errors of the client, such as a timeout or a refused request.
    pub fn status(&self) -> Option<&ApiStatus> {
        self.inner.status.as_ref()
    }

    /// Returns the request of an [`Ambiguous`](ErrorKind::Ambiguous) write, with the destination:
    /// read the object there to find out whether the write was executed.
    ///
    /// `None` for every other kind.
    pub fn uncertain_write(&self) -> Option<&UncertainWrite> {
        self.inner.uncertain_write.as_deref()
    }

    /// Returns the time that the API server asked to wait.
    ///
    /// `None` when the server named no time. The client has already waited between its own
    /// attempts; the returned time is the wait before a new call.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }
}

/// Maps a Status to a kind. The reason goes before the code where both decide.
fn kind_of(status: &ApiStatus) -> ErrorKind {
    match (status.code, status.reason.as_str()) {
        // 409 stands for both: only the reason separates a taken name from a lost race.
        (_, "AlreadyExists") => ErrorKind::AlreadyExists,
        (_, "Expired" | "Gone") | (410, _) => ErrorKind::Expired,
        (404, _) => ErrorKind::NotFound,
        (409, _) => ErrorKind::Conflict,
        (422, _) => ErrorKind::Invalid,
        (400, _) => ErrorKind::BadRequest,
        (401, _) => ErrorKind::Unauthorized,
        (403, _) => ErrorKind::Forbidden,
        (406 | 415, _) => ErrorKind::UnsupportedMediaType,
        (429, _) => ErrorKind::TooManyRequests,
        _ => ErrorKind::Server,
    }
}

/// Text, code and reason of a Status.
fn describe(status: &ApiStatus) -> String {
    let text = if status.message.is_empty() { "no message" } else { &status.message };
    match status.reason.as_str() {
        "" => format!("{text} ({})", status.code),
        reason => format!("{text} ({} {reason})", status.code),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.inner.kind, self.inner.message)?;
        let mut cause = self.source();
        // `Display` shows a single level; `Debug` shows the whole chain, for logs and failed tests.
        while let Some(source) = cause {
            write!(f, "; caused by: {source}")?;
            cause = source.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as _)
    }
}
