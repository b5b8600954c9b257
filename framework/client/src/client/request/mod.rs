//! The builder of requests to any path of an API server.
//!
//! A request owns its client, so the value that [`Client::get`] and its siblings return can send
//! itself. A request can be stored, cloned and sent any number of times, from several tasks. The
//! first mistake is recorded and later setters do nothing; sending reports the mistake. For kinds
//! with a Rust type [`Api`](crate::api::Api) is shorter. Not included: types, pages, resumed
//! watches.

mod address;
mod body;
mod params;
mod path_template;
mod prepared;
mod response;
mod restrict;
mod send;
mod stream;
pub(in crate::client) mod warning;
mod watch;

pub use address::Address;
pub use body::{Body, Encoded};
pub(in crate::client) use path_template::ApiPath;
pub use prepared::Prepared;
pub(in crate::client) use prepared::{Headers, is_secret};
pub use response::Response;
pub use stream::ByteStream;
pub use stream::at_once;
pub use warning::{LogWarnings, NoWarnings, Warning, WarningHandler, WriteWarnings};
pub use watch::{RawEvent, RawWatch};

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;

use self::address::UrlPrefix;
use self::body::BodyContent;
use self::prepared::Extra;
use crate::client::Client;
use crate::client::policy::{BackoffManager, RequestLimiter};
use windlass_core::resource::Scope;

/// Format of a patch.
///
/// See [`Patch`](crate::api::Patch) for the differences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchType {
    /// JSON patch (RFC 6902): an array of operations.
    Json,
    /// JSON merge patch (RFC 7386).
    Merge,
    /// Strategic merge patch; built-in kinds only.
    Strategic,
    /// Server-side apply.
    Apply,
}

impl PatchType {
    /// Returns the media type of this format.
    ///
    /// In the header `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    /// Returns the format of a media type, whose parameters are ignored.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        let all = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];
        all.into_iter().find(|form| form.content_type().eq_ignore_ascii_case(name))
    }
}

/// Builder of a request to any path of an API server.
///
/// A request owns its client, so the value that [`Client::get`] and its siblings return can send
/// itself. A request can be stored, cloned and sent any number of times, from several tasks. The
/// first mistake is recorded and later setters do nothing; sending reports the mistake as
/// [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage).
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn f(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let pods = client.get().group_version("", "v1").namespace("shop").resource("pods");
/// let names = pods.param("labelSelector", "app=shop").send().await?.json::<serde_json::Value>()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    client: Client,
    method: Method,
    /// Whether the patch is an apply, unless a header changes the media type.
    apply: bool,
    address: Address,
    params: Vec<(String, String)>,
    headers: HeaderMap,
    /// Body.
    content: BodyContent,
    timeout: Option<Duration>,
    response_limit: Option<usize>,
    repeatable: bool,
    background: bool,
    /// Description for error texts, instead of the default.
    words: Option<String>,
    /// Settings that override the client's.
    extra: Extra,
    /// First mistake of the builder.
    mistake: Option<String>,
}

/// Requests of any kind.
impl Client {
    /// Returns a request with the method `GET`.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let answer = client.get().abs_path(["readyz"]).param("verbose", "true").send().await?;
    /// println!("{}", String::from_utf8_lossy(answer.raw()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self) -> Request {
        self.verb(Method::GET)
    }

    /// Returns a request with the method `POST`.
    ///
    /// A creation; not repeated after a failure that leaves its fate unknown.
    pub fn post(&self) -> Request {
        self.verb(Method::POST)
    }

    /// Returns a request with the method `PUT`.
    ///
    /// A replacement; call [`Request::repeatable`] when the body carries a resourceVersion.
    pub fn put(&self) -> Request {
        self.verb(Method::PUT)
    }

    /// Returns a request with the method `PATCH`; the content type follows from `patch`.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use serde_json::json;
    /// use windlass::client::PatchType;
    ///
    /// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
    /// let request = client.patch(PatchType::Merge).group_version("", "v1");
    /// let request = request.namespace("shop").resource("configmaps").name("settings");
    /// request.object(&json!({ "data": { "color": "red" } })).send().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn patch(&self, patch: PatchType) -> Request {
        let mut request = self.verb(Method::PATCH);
        request.apply = patch == PatchType::Apply;
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(patch.content_type()));
        request
    }

    /// Returns a request with the method `DELETE`.
    ///
    /// Without a [`name`](Request::name) the request deletes the collection.
    pub fn delete(&self) -> Request {
        self.verb(Method::DELETE)
    }

    /// Returns a request with any method.
    ///
    /// The Kubernetes verb follows from method and address.
    pub fn verb(&self, method: Method) -> Request {
        Request {
            timeout: self.asked_timeout(),
            extra: Extra { backoff: self.new_backoff(), ..Extra::default() },
            client: self.clone(),
            method,
            apply: false,
            address: Address::default(),
            params: Vec::new(),
            headers: HeaderMap::new(),
            content: BodyContent::default(),
            response_limit: None,
            repeatable: false,
            background: false,
            words: None,
            mistake: None,
        }
    }
}

/// Target of the request.
impl Request {
    /// Sets the versioned API: `/api/version` for the core group `""`, else `/apis/group/version`.
    ///
    /// A name that is no path segment is a mistake of the builder.
    pub fn group_version(self, group: &str, version: &str) -> Self {
        self.change(|request| request.address.set_version(group, version))
    }

    /// Adds path segments behind the versioned API, before namespace and resource.
    pub fn prefix<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| match &mut request.address.front {
            UrlPrefix::Versioned(front) | UrlPrefix::Absolute(front, _) => {
                front.extend(segments);
                Ok(())
            }
            // A URI stands for the whole path, so a prefix would have no place.
            UrlPrefix::Uri(_) => Err("a URI takes no prefix; set one or the other".to_owned()),
        })
    }

    /// Adds path segments at the end, behind name and subresource.
    pub fn suffix<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| {
            request.address.suffix.extend(segments);
            Ok(())
        })
    }

    /// Sets the path, in place of the versioned API and prefixes. A final slash is kept when there
    /// is a single segment and nothing follows.
    pub fn abs_path<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| {
            let slash = matches!(&segments[..], [one] if one.len() > 1 && one.ends_with('/'));
            request.address.front = UrlPrefix::Absolute(segments, slash);
            Ok(())
        })
    }

    /// Sets path and query to those of `uri`, in place of earlier settings. The path is relative to
    /// the server's root: the path of an address such as `https://proxy/clusters/c1` does not
    /// precede it.
    pub fn request_uri(self, uri: &str) -> Self {
        self.change(|request| {
            let wrong = |why: &str| format!("`{uri}` is not a request URI: {why}");
            let parsed: http::Uri = uri.parse().map_err(|error| wrong(&format!("{error}")))?;
            if !parsed.path().starts_with('/') {
                return Err(wrong("its path does not begin with a slash"));
            }
            let path = parsed.path().trim_end_matches('/');
            request.address.front =
                UrlPrefix::Uri(if path.is_empty() { "/".into() } else { parsed.path().into() });
            request.extra.from_root = true;
            let parameters = params::parse(parsed.query().unwrap_or_default());
            // The query of the URI replaces parameters of the same names only.
            request.params.retain(|(old, _)| !parameters.iter().any(|(new, _)| new == old));
            request.params.extend(parameters);
            Ok(())
        })
    }

    /// Sets the namespace. An empty namespace counts as set: nothing is added to the path, and a
    /// request for a single object is refused before sending.
    pub fn namespace(self, namespace: &str) -> Self {
        self.change(|request| request.address.set_namespace(namespace))
    }

    /// Sets the namespace if `scoped`; otherwise marks the kind as cluster-scoped.
    pub fn namespace_if_scoped(mut self, namespace: &str, scoped: bool) -> Self {
        if scoped {
            return self.namespace(namespace);
        }
        if self.mistake.is_none() {
            self.address.scope = Some(Scope::Cluster);
        }
        self
    }

    /// Sets the resource, in the plural, such as `deployments`; the text is put into lower case.
    ///
    /// A name with a slash is a mistake of the builder.
    pub fn resource(self, resource: &str) -> Self {
        self.change(|request| request.address.set_resource(resource))
    }

    /// Sets the object's name.
    ///
    /// An empty name, `.`, `..` and a name with a slash are mistakes of the builder.
    pub fn name(self, name: &str) -> Self {
        self.change(|request| request.address.set_name(name))
    }

    /// Sets the subresource, such as `["status"]`, perhaps of several segments.
    pub fn subresource<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| request.address.set_subresource(segments))
    }
}

/// Parameters, headers and body.
impl Request {
    /// Adds a query parameter; the same name may be added several times.
    ///
    /// Name and value are percent-encoded when the request is sent.
    pub fn param(self, name: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        self.change(|request| {
            if name.is_empty() {
                return Err("a query parameter has no name".to_owned());
            }
            request.params.push((name.to_owned(), value));
            Ok(())
        })
    }

    /// Adds the members of `options`, such as `ListOptions`, as query parameters: texts, numbers
    /// and booleans unchanged, a list as several parameters of the same name, `null` not at all.
    pub fn versioned_params<T: Serialize>(self, options: &T) -> Self {
        self.change(|request| {
            request.params.extend(params::of(options)?);
            Ok(())
        })
    }

    /// Sets a header to these values, instead of earlier values.
    ///
    /// A second call with the name replaces the values. Credentials belong to the
    /// [configuration](super::ClientConfig).
    pub fn header<S: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = S>) -> Self {
        let values = owned(values);
        self.change(|request| {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{name}` is not a name of a header"))?;
            request.headers.remove(&name);
            for value in values {
                // The value may be a secret, so the error text does not contain the value.
                let value = HeaderValue::from_str(&value)
                    .map_err(|_| format!("the value of header `{name}` fits no HTTP header"))?;
                request.headers.append(name.clone(), value);
            }
            Ok(())
        })
    }

    /// Sets the content type of the body. Default: the client's.
    pub fn content_type(self, media_type: &str) -> Self {
        self.header(CONTENT_TYPE.as_str(), [media_type])
    }

    /// Sets the media types of the answer. Default: the client's.
    pub fn accept(self, media_types: &str) -> Self {
        self.header(ACCEPT.as_str(), [media_types])
    }

    /// Sets the body.
    pub fn body(self, body: impl Into<Body>) -> Self {
        let body = body.into();
        self.change(|request| {
            request.content = BodyContent::of(body)?;
            Ok(())
        })
    }

    /// Sets the body to the content of a file; see [`Body::File`].
    pub fn body_file(self, path: impl Into<PathBuf>) -> Self {
        self.body(Body::File(path.into()))
    }

    /// Sets the body to an object; see [`Body::object`].
    pub fn object<T: Serialize>(self, object: &T) -> Self {
        self.body(Body::object(object))
    }
}

/// Timeouts, limits and retries.
impl Request {
    /// Sets the total time of the call with all retries; for a stream or a watch, the time up to
    /// the first byte. The server receives the timeout too, as the query parameter `timeout`. Zero
    /// selects the client's default again and is not sent.
    ///
    /// Default: the client's, 30 s.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|request| {
            request.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
            Ok(())
        })
    }

    /// Sets the largest answer that [`send`](Self::send) reads, in bytes, decoded, and the largest
    /// event of a [`watch`](Self::watch). Default: the client's (64 MiB), and 16 MiB for an event.
    pub fn response_limit(self, bytes: usize) -> Self {
        self.change(|request| {
            request.response_limit = Some(bytes);
            Ok(())
        })
    }

    /// Sets the rate limiter, in place of the client's.
    ///
    /// Default: the client's, which has no limiter unless the builder sets one.
    pub fn throttle(self, limiter: Arc<dyn RequestLimiter>) -> Self {
        self.change(|request| {
            request.extra.limiter = Some(limiter);
            Ok(())
        })
    }

    /// Sets the backoff manager, in place of the client's.
    ///
    /// Default: the client's.
    pub fn backoff(self, manager: Arc<dyn BackoffManager>) -> Self {
        self.change(|request| {
            request.extra.backoff = Some(manager);
            Ok(())
        })
    }

    /// Sets the handler of warnings, in place of the client's.
    pub fn warning_handler(self, handler: Arc<dyn WarningHandler>) -> Self {
        self.change(|request| {
            request.extra.warnings = Some(handler);
            Ok(())
        })
    }

    /// Sets the maximum number of retries; 0 means a single attempt. Default: 10.
    ///
    /// client-go's default, too. A refresh of credentials after a 401 is not counted.
    pub fn max_retries(self, retries: u32) -> Self {
        self.change(|request| {
            request.extra.max_retries = Some(retries);
            Ok(())
        })
    }

    /// Declares that a second execution does no harm, as of a replace that carries a
    /// resourceVersion. The request is then tried again after failures that leave the execution
    /// unknown. Reads and applies always are.
    ///
    /// A wrong declaration executes a write twice.
    pub fn repeatable(self) -> Self {
        self.change(|request| {
            request.repeatable = true;
            Ok(())
        })
    }

    /// Declares that the caller retries, as caches do; see
    /// [`Prepared::background`](super::Prepared::background).
    pub fn background(self) -> Self {
        self.change(|request| {
            request.background = true;
            Ok(())
        })
    }

    /// Sets the description for error texts, such as `run a command in pod "a"`. Default: from the
    /// parts.
    pub fn describe(self, what: &str) -> Self {
        self.change(|request| {
            request.words = Some(what.to_owned());
            Ok(())
        })
    }

    /// Applies a setter, unless a mistake was recorded before.
    fn change(mut self, set: impl FnOnce(&mut Self) -> Result<(), String>) -> Self {
        if self.mistake.is_none()
            && let Err(mistake) = set(&mut self)
        {
            self.mistake = Some(mistake);
        }
        self
    }
}

/// Collects texts into owned strings.
fn owned<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Vec<String> {
    texts.into_iter().map(|text| text.as_ref().to_owned()).collect()
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.address.path())
            .field("params", &self.params)
            .field("headers", &Headers(&self.headers))
            .field("content", &self.content)
            .field("timeout", &self.timeout)
            .field("mistake", &self.mistake)
            .finish_non_exhaustive()
    }
}
