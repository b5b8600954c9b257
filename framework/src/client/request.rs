//! A request before and a response after it was sent.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

/// What a request does, as metrics, retries and RBAC name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Apply,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// Does it change anything?
    pub fn writes(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// One request, ready to be sent as often as its retries need.
#[derive(Clone, Debug)]
pub struct Request {
    /// What it does.
    pub verb: Verb,
    /// HTTP method.
    pub method: Method,
    /// Path, without query.
    pub path: String,
    /// Query parameters, in order.
    pub query: Vec<(&'static str, String)>,
    /// Extra headers.
    pub headers: HeaderMap,
    /// Body; empty for none.
    pub body: Bytes,
    /// What is being tried, for error texts: `create websites "home" in "shop"`.
    pub what: String,
    /// Total time for the call with all its retries; `None` is the client's default of 30 s (no
    /// limit for watches).
    pub timeout: Option<Duration>,
    /// May it be sent again after a failure that left its fate unknown? True for reads, applies, and
    /// writes that carry a resourceVersion or uid precondition.
    pub repeatable: bool,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Response {
    /// Status code; 2xx.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}
