//! A request before and a response after it was sent.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
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

/// One request, ready to be sent as often as its retries need. Its `Debug` shows no secret: of the
/// body the length, of headers with credentials the name.
#[derive(Clone)]
pub struct Prepared {
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
    /// Largest answer that is read as a whole, in bytes, decoded. `None` is the client's: 64 MiB,
    /// unless [`ClientBuilder::max_answer`](super::ClientBuilder::max_answer) says otherwise.
    pub answer_limit: Option<usize>,
    /// May it be sent again after a failure that left its fate unknown? True for reads, applies, and
    /// writes that carry a resourceVersion or uid precondition.
    pub repeatable: bool,
}

/// A complete answer. Its `Debug` shows of the body only the length.
#[derive(Clone)]
pub struct Response {
    /// Status code; 2xx.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Prepared {
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
            answer_limit: None,
            repeatable: !verb.writes(),
        }
    }

    /// The value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("verb", &self.verb)
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query", &self.query)
            .field("headers", &Headers(&self.headers))
            .field("body", &Length(self.body.len()))
            .field("what", &self.what)
            .field("timeout", &self.timeout)
            .field("answer_limit", &self.answer_limit)
            .field("repeatable", &self.repeatable)
            .finish()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &Headers(&self.headers))
            .field("body", &Length(self.body.len()))
            .finish()
    }
}

/// Headers, those with credentials without their values.
struct Headers<'a>(&'a HeaderMap);

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in self.0 {
            if [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE].contains(name) {
                map.entry(name, &format_args!("[redacted]"));
            } else {
                map.entry(name, value);
            }
        }
        map.finish()
    }
}

struct Length(usize);

impl fmt::Debug for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_output_shows_a_body_or_credentials() {
        let mut request = Prepared::get("/api/v1/namespaces/shop/secrets/key", "get a secret");
        request.body = Bytes::from_static(b"canary");
        request.headers.insert(AUTHORIZATION, http::HeaderValue::from_static("Bearer canary"));
        request.headers.insert("x-kept", http::HeaderValue::from_static("shown"));
        let response = Response {
            status: StatusCode::OK,
            headers: request.headers.clone(),
            body: request.body.clone(),
        };
        let text = format!("{request:?} {response:#?}");
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains("6 bytes") && text.contains("shown"), "{text}");
    }
}
