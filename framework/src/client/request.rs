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

    /// As Kubernetes spells it in RBAC and audit records; an apply is a `patch` there, but keeps its
    /// own name here.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
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
    /// Total time for the call with all its retries, up to the last byte of the answer; for a stream
    /// up to its first byte. `None` is the client's default of 30 s.
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

impl Request {
    /// A `GET` of `path` that tries `what`, such as `read the version of the API server`.
    pub fn get(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(Verb::Get, Method::GET, path.into(), what.into())
    }

    /// A request without query, headers and body; repeatable when its verb only reads.
    pub fn new(verb: Verb, method: Method, path: String, what: String) -> Self {
        Self {
            verb,
            method,
            path,
            query: Vec::new(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            what,
            timeout: None,
            repeatable: !verb.writes(),
        }
    }

    /// The value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}
