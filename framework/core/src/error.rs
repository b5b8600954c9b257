//! The error type of the framework.
//!
//! `Display` names the attempted operation, its object and the remedy, one level only; causes
//! follow through [`source`](std::error::Error::source). Callers decide by [`Error::kind`]; the
//! API server's answer is in [`Error::status`].

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
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// Category of an error, for callers to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 404: the object or the resource does not exist.
    NotFound,
    /// 409 with reason `AlreadyExists`.
    AlreadyExists,
    /// 409: another writer was first, or a precondition failed.
    Conflict,
    /// 422: the API server refused the object's content.
    Invalid,
    /// 400: the request makes no sense to the API server.
    BadRequest,
    /// 401: credentials missing or refused.
    Unauthorized,
    /// 403: not allowed.
    Forbidden,
    /// 410, or reason `Expired`: the resourceVersion or continue token is too old.
    Expired,
    /// 429: the server asked to slow down, until retries were used up.
    TooManyRequests,
    /// 415 or 406: the server does not speak this format.
    UnsupportedMediaType,
    /// Any other error answer of the API server.
    Server,
    /// A deadline passed; the request was certainly not executed, or only read.
    Timeout,
    /// A write may or may not have been executed: read before trying again.
    Ambiguous,
    /// No connection: name lookup, TCP or TLS failed before anything was sent.
    Connect,
    /// The connection broke after the request was sent.
    Transport,
    /// Bytes that do not decode into the requested type.
    Decode,
    /// Configuration is missing or wrong.
    Config,
    /// The caller passed something that cannot be sent.
    Usage,
    /// A write was refused here, because this process does not hold the lease.
    NotLeader,
    /// Cancelled, or shutting down.
    Cancelled,
    /// Anything else.
    Other,
}

/// A write whose fate is unknown: the request as it was sent, and its destination.
///
/// Its `Debug` shows only the length of the body.
#[derive(Clone, PartialEq, Eq)]
pub struct UncertainWrite {
    /// HTTP method.
    pub method: Method,
    /// The API server's host and port.
    pub host: String,
    /// Path below the server's address.
    pub path: String,
    /// Query as it was sent, without the question mark; empty for none.
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
pub struct Error {
    inner: Box<Inner>,
}

/// Boxed, so that a `Result` stays small.
struct Inner {
    kind: ErrorKind,
    message: String,
    status: Option<ApiStatus>,
    retry_after: Option<Duration>,
    doubt: Option<Box<UncertainWrite>>,
    source: Option<BoxError>,
}

impl Error {
    /// Creates an error of `kind` with a text that names the attempted operation and the remedy.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner {
                kind,
                message: message.into(),
                status: None,
                retry_after: None,
                doubt: None,
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
    #[must_use]
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// Creates an error from the API server's answer to `tried`, such as
    /// `get websites "home" in "shop"`.
    pub fn from_status(tried: &str, status: ApiStatus) -> Self {
        let mut error =
            Self::new(kind_of(&status), format!("cannot {tried}: {}", describe(&status)));
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        error.inner.retry_after = (seconds > 0).then(|| Duration::from_secs(seconds));
        error.inner.status = Some(status);
        error
    }

    /// Adds the time that the server asked to wait.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        // A given time replaces the one of the Status.
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
    pub fn doubted(mut self, doubt: UncertainWrite) -> Self {
        self.inner.doubt = Some(Box::new(doubt));
        self
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
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// Returns the API server's answer, if there was one.
    pub fn status(&self) -> Option<&ApiStatus> {
        self.inner.status.as_ref()
    }

    /// Returns the request of an [`Ambiguous`](ErrorKind::Ambiguous) write, with its destination:
    /// read the object there to find out whether the write was executed.
    pub fn doubt(&self) -> Option<&UncertainWrite> {
        self.inner.doubt.as_deref()
    }

    /// Returns the time that the API server asked to wait.
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
        // `Display` shows one level; `Debug` shows the whole chain, for logs and failed tests.
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
