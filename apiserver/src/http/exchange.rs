//! A decoded request, and the answer before becoming an HTTP response.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use parking_lot::Mutex;

use super::body::Payload;
use super::codec::{self, Format};
use super::route::Route;
use crate::auth::User;
use crate::faults::FaultAction;
use crate::status::ApiError;
use crate::storage::CollectedWrites;
use crate::verbs::options::Query;

/// A decoded request without the body. Has no `Debug`: credentials are among its headers.
pub(crate) struct DecodedRequest {
    /// Method, URL and headers.
    pub(crate) parts: Parts,
    /// Meaning of the path.
    pub(crate) route: Route,
    /// Options in the URL.
    pub(crate) query: Query,
    /// The authenticated user.
    pub(crate) user: User,
    /// `User-Agent` header.
    pub(crate) agent: String,
    /// Actions of the faults that strike the request.
    pub(crate) actions: Vec<FaultAction>,
    /// Time since the start of the server when the headers were there.
    pub(crate) begun: Duration,
    /// Name of the user that acts as another user, for the audit log; empty otherwise.
    pub(crate) impersonator: String,
    /// Writes of the request, for the audit log.
    pub(crate) written: Mutex<CollectedWrites>,
}

/// An answer before becoming an HTTP response.
pub(crate) struct Reply {
    /// Status code.
    pub(crate) code: u16,
    /// Media type; empty if there is none.
    pub(crate) media: String,
    /// Further headers.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// Texts for `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// Body of the answer.
    pub(crate) payload: Payload,
}

impl fmt::Debug for Reply {
    /// Writes the answer without the body, which may be a Secret or a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Reply");
        out.field("code", &self.code).field("media", &self.media).finish_non_exhaustive()
    }
}

impl Reply {
    /// Returns a reply with bytes of a media type.
    pub(crate) fn bytes(code: u16, media: &str, bytes: impl Into<Bytes>) -> Self {
        Self {
            code,
            media: media.to_owned(),
            headers: Vec::new(),
            warnings: Vec::new(),
            payload: Payload::Whole(Some(bytes.into())),
        }
    }

    /// Returns a reply in plain text, which browsers must not take for another type, as those of
    /// Go.
    pub(crate) fn text(code: u16, text: impl Into<String>) -> Self {
        Self::bytes(code, "text/plain; charset=utf-8", text.into()).unsniffed()
    }

    /// Forbids browsers to guess another type from the body.
    pub(crate) fn unsniffed(mut self) -> Self {
        self.headers.push(("x-content-type-options", "nosniff".to_owned()));
        self
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        Self::failure(&error, Format::Json)
    }
}

impl Reply {
    /// Returns a failure in the format that the client prefers.
    pub(crate) fn failure(error: &ApiError, format: Format) -> Self {
        if error.is_plain() {
            return Self::text(error.code(), error.message().to_owned());
        }
        let (bytes, media) = codec::encode(format, &error.body());
        let mut reply = Self::bytes(error.code(), media, bytes);
        if let Some(seconds) = error.retry_after() {
            reply.headers.push(("retry-after", seconds.to_string()));
        }
        reply
    }
}
