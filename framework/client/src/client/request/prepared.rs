//! Requests as plain data, ready to be sent.

// DESIGN.md, 15: `Request` and `Api<K>` both end in `Prepared`

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::params::duration;
use super::warning::WarningHandler;
use crate::client::policy::{BackoffManager, RequestLimiter};
use crate::client::transport::RequestBody;
use windlass_core::resource::{Scope, Verb};

/// A request, ready to be sent as often as retries need. `Debug` shows no secret: of the body only
/// the length, of headers with credentials only the name.
///
/// Plain data, without a client: a `Prepared` can be stored, changed and sent by any client.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use windlass::client::Prepared;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let mut request = Prepared::get("/api/v1/pods", "list the Pods");
/// request.push_parameter("limit", "1");
/// let answer = client.send(request).await?;
/// println!("{} bytes", answer.body.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Prepared {
    /// Kubernetes verb.
    pub verb: Verb,
    /// HTTP method.
    pub method: Method,
    /// Path below the server's address, percent-encoded, without query.
    pub path: String,
    /// Query parameters, in order.
    pub query: Vec<(Cow<'static, str>, String)>,
    /// Extra headers.
    pub headers: HeaderMap,
    /// Body; empty for none. A body that [`Request`](super::Request) streams from a reader is not
    /// here, and a request with such a body is sent once.
    pub body: Bytes,
    /// Description for error texts: `create websites "home" in "shop"`.
    pub what: String,
    /// Total time for the call with all retries, up to the last byte of the answer; for a stream up
    /// to the first byte. `None` is the client's default of 30 s.
    pub timeout: Option<Duration>,
    /// Largest answer that is read as a whole, in bytes, decoded. `None` is the client's: 64 MiB,
    /// unless [`max_response_size`](crate::client::ClientBuilder::max_response_size) says
    /// otherwise.
    pub response_limit: Option<usize>,
    /// Whether the request may be sent again after a failure that leaves the execution unknown.
    /// True for reads, applies, and writes that carry a resourceVersion or uid precondition.
    pub repeatable: bool,
    /// Scope of the kind; `None` when no kind is known.
    pub scope: Option<Scope>,
    /// Whether the caller retries without end, as caches do. The retries of such requests have a
    /// separate budget, and so use up no retries of other calls.
    pub background: bool,
    /// Settings of the builder of requests.
    pub(crate) extra: Extra,
}

/// Settings that only the builder of requests sets; `None` selects the client's.
#[derive(Clone, Default)]
pub(crate) struct Extra {
    pub(crate) limiter: Option<Arc<dyn RequestLimiter>>,
    pub(crate) backoff: Option<Arc<dyn BackoffManager>>,
    pub(crate) warnings: Option<Arc<dyn WarningHandler>>,
    pub(crate) max_retries: Option<u32>,
    /// A body that is read while the request is sent.
    pub(crate) reader: Option<RequestBody>,
    /// Whether the path is relative to the server's root, not to the path of the address.
    pub(crate) from_root: bool,
    /// The kind, with a subresource behind a slash: the target of a grant.
    pub(crate) kind: Option<Arc<str>>,
}

impl Prepared {
    /// Creates a `GET` of `path`; `what` describes the request, such as
    /// `read the version of the API server`.
    pub fn get(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self::new(Verb::Get, Method::GET, path.into(), what.into())
    }

    /// Creates a request without query, headers and body; repeatable when the verb only reads.
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
            response_limit: None,
            repeatable: !verb.writes(),
            scope: None,
            background: false,
            extra: Extra::default(),
        }
    }

    /// Returns the value of a query parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    /// Adds a query parameter.
    ///
    /// An earlier parameter of the name stays.
    pub fn push_parameter(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.query.push((name.into(), value.into()));
    }

    /// Adds the timeout as the query parameter `timeout`, which limits the server's work, too.
    pub(crate) fn push_timeout(&mut self) {
        if let Some(timeout) = self.timeout {
            self.push_parameter("timeout", duration(timeout));
        }
    }

    /// Returns the path with `{namespace}` and `{name}` in place of the values that differ from
    /// object to object: few different texts, for spans and logs.
    pub fn template(&self) -> String {
        super::path_template::template(&self.path)
    }

    /// Returns whether the request can be sent now, with the whole body.
    pub(crate) fn is_sendable(&self) -> bool {
        self.extra.reader.as_ref().is_none_or(RequestBody::is_untouched)
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
            .field("response_limit", &self.response_limit)
            .field("repeatable", &self.repeatable)
            .field("scope", &self.scope)
            .field("background", &self.background)
            .finish_non_exhaustive()
    }
}

/// Wrapper whose `Debug` hides the values of headers with credentials.
pub(in crate::client) struct Headers<'a>(pub(in crate::client) &'a HeaderMap);

impl fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in self.0 {
            if is_secret(name, value) {
                map.entry(name, &format_args!("[redacted]"));
            } else {
                map.entry(name, value);
            }
        }
        map.finish()
    }
}

/// Returns whether a header carries credentials.
pub(in crate::client) fn is_secret(name: &HeaderName, value: &HeaderValue) -> bool {
    // Headers of proxies and gateways carry credentials under many names.
    const WORDS: &[&str] = &["token", "secret", "password", "api-key", "apikey"];
    value.is_sensitive()
        || [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE, SET_COOKIE].contains(name)
        || WORDS.iter().any(|word| name.as_str().contains(word))
}

pub(in crate::client) struct Length(pub(in crate::client) usize);

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
        request.headers.insert("x-auth-token", http::HeaderValue::from_static("canary"));
        request.headers.insert("X-Api-Key", http::HeaderValue::from_static("canary"));
        request.headers.insert("x-kept", http::HeaderValue::from_static("shown"));
        let text = format!("{request:?} {request:#?}");
        assert!(!text.contains("canary"), "{text}");
        assert!(text.contains("6 bytes") && text.contains("shown"), "{text}");
    }
}
