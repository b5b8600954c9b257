//! The one error type of the framework.
//!
//! `Display` says what was tried, on what and what to do, one level only; causes follow through
//! [`source`](std::error::Error::source). Callers decide by [`Error::kind`]; an API server's own
//! words are in [`Error::status`].

mod predicates;
mod status;

pub(crate) use predicates::MissingNamespace;
pub use status::{ApiStatus, StatusCause, StatusDetails, StatusMetadata};

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::Method;

/// A boxed cause.
pub type BoxError = Box<dyn StdError + Send + Sync + 'static>;

/// What went wrong, for callers to decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// 404: the object or the resource does not exist.
    NotFound,
    /// 409 with reason `AlreadyExists`.
    AlreadyExists,
    /// 409: somebody else wrote first, or a precondition failed.
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
    /// 429: asked to slow down, until retries were used up.
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
    /// Bytes that do not decode into what was asked for.
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

/// A write whose fate is unknown: what was sent, and to where. Its `Debug` shows of the body only the
/// length.
#[derive(Clone, PartialEq, Eq)]
pub struct Doubt {
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
    /// Body; empty for one that was streamed from a reader.
    pub body: Bytes,
}

impl fmt::Debug for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doubt")
            .field("method", &self.method)
            .field("host", &self.host)
            .field("path", &self.path)
            .field("query", &self.query)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// An error of the framework: what was tried, why it failed, what to do.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    message: String,
    status: Option<ApiStatus>,
    retry_after: Option<Duration>,
    doubt: Option<Box<Doubt>>,
    source: Option<BoxError>,
}

impl Error {
    /// An error of `kind` with a text that says what was tried and what to do.
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

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, source: impl Into<BoxError>) -> Self {
        self.inner.source = Some(source.into());
        self
    }

    /// An error from the API server's answer to `tried`, such as `get websites "home" in "shop"`.
    pub fn from_status(tried: &str, status: ApiStatus) -> Self {
        let mut error =
            Self::new(kind_of(&status), format!("cannot {tried}: {}", describe(&status)));
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        error.inner.retry_after = (seconds > 0).then(|| Duration::from_secs(seconds));
        error.inner.status = Some(status);
        error
    }

    /// Adds how long the server asked to wait.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.inner.retry_after = retry_after.or(self.inner.retry_after);
        self
    }

    /// The same error under another kind, for callers that know more than the status code says.
    #[must_use]
    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.inner.kind = kind;
        self
    }

    /// Adds what was sent, of a write whose fate is unknown.
    #[must_use]
    pub(crate) fn doubted(mut self, doubt: Doubt) -> Self {
        self.inner.doubt = Some(Box::new(doubt));
        self
    }

    /// Appends `; note` to the text.
    #[must_use]
    pub(crate) fn note(mut self, note: &str) -> Self {
        self.inner.message.push_str("; ");
        self.inner.message.push_str(note);
        self
    }

    /// Puts `preface: ` in front of the text.
    #[must_use]
    pub(crate) fn preface(mut self, preface: &str) -> Self {
        self.inner.message.insert_str(0, ": ");
        self.inner.message.insert_str(0, preface);
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The API server's answer, when there was one.
    pub fn status(&self) -> Option<&ApiStatus> {
        self.inner.status.as_ref()
    }

    /// What was sent and to where, when it is [`Ambiguous`](ErrorKind::Ambiguous): read the object
    /// there to find out whether it was executed.
    pub fn doubt(&self) -> Option<&Doubt> {
        self.inner.doubt.as_deref()
    }

    /// How long the API server asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.inner.retry_after
    }
}

fn kind_of(status: &ApiStatus) -> ErrorKind {
    match (status.code, status.reason.as_str()) {
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
