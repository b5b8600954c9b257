//! The builder of requests: any path of an API server, one setter at a time.
//!
//! A request owns its client, so the value that [`Client::get`] and its siblings return can send
//! itself. It can be kept, cloned and sent any number of times, from several tasks. The first
//! mistake is kept, later setters do nothing, and whatever sends it reports the mistake. For kinds
//! with a Rust type [`Api`](crate::api::Api) is shorter; not here: types, pages, resumed watches.

mod address;
mod body;
mod params;
mod send;
mod watch;

pub use body::{Body, Encoded};
pub use watch::{RawEvent, RawWatch};

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde::Serialize;

use self::address::{Address, Front, check_segment};
use self::body::Content;
use super::prepared::{Extra, Headers};
use super::{BackoffManager, Client, RateLimiter, WarningHandler};
use crate::resource::Scope;

/// How a patch says what to change.
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
    /// The media type that names it.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }

    /// What a media type says, parameters left aside.
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        let name = content_type.split(';').next().unwrap_or_default().trim();
        let all = [Self::Json, Self::Merge, Self::Strategic, Self::Apply];
        all.into_iter().find(|form| form.content_type().eq_ignore_ascii_case(name))
    }
}

/// A request being put together, to any path of an API server, one setter at a time.
///
/// It owns its client, so what [`Client::get`] and its siblings return can send itself. It can be
/// kept, cloned and sent any number of times, from several tasks. The first mistake is kept, later
/// setters do nothing, and whatever sends it reports the mistake as
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage).
///
/// ```no_run
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
    apply: bool,
    address: Address,
    params: Vec<(String, String)>,
    headers: HeaderMap,
    content: Content,
    timeout: Option<Duration>,
    answer_limit: Option<usize>,
    repeatable: bool,
    background: bool,
    words: Option<String>,
    extra: Extra,
    mistake: Option<String>,
}

/// Requests of any kind.
impl Client {
    /// A request with the method `GET`.
    pub fn get(&self) -> Request {
        self.verb(Method::GET)
    }

    /// A request with the method `POST`.
    pub fn post(&self) -> Request {
        self.verb(Method::POST)
    }

    /// A request with the method `PUT`.
    pub fn put(&self) -> Request {
        self.verb(Method::PUT)
    }

    /// A request with the method `PATCH`; the content type follows from `patch`.
    pub fn patch(&self, patch: PatchType) -> Request {
        let mut request = self.verb(Method::PATCH);
        request.apply = patch == PatchType::Apply;
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(patch.content_type()));
        request
    }

    /// A request with the method `DELETE`.
    pub fn delete(&self) -> Request {
        self.verb(Method::DELETE)
    }

    /// A request with any method.
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
            content: Content::default(),
            answer_limit: None,
            repeatable: false,
            background: false,
            words: None,
            mistake: None,
        }
    }
}

/// Where it goes.
impl Request {
    /// The versioned API: `/api/version` for the core group `""`, else `/apis/group/version`.
    pub fn group_version(self, group: &str, version: &str) -> Self {
        self.change(|request| {
            check_segment("group", group)?;
            check_segment("version", version)?;
            if version.is_empty() {
                return Err("the version is empty; name one, such as `v1`".to_owned());
            }
            once("group and version", &mut request.address.version, (group.into(), version.into()))
        })
    }

    /// Adds path segments behind the versioned API, before namespace and resource.
    pub fn prefix<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| match &mut request.address.front {
            Front::Versioned(front) | Front::Absolute(front, _) => {
                front.extend(segments);
                Ok(())
            }
            Front::Uri(_) => Err("a URI takes no prefix; set one or the other".to_owned()),
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

    /// The path instead of the versioned API and prefixes. A final slash is kept when there is one
    /// segment and nothing follows.
    pub fn abs_path<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| {
            let slash = matches!(&segments[..], [one] if one.len() > 1 && one.ends_with('/'));
            request.address.front = Front::Absolute(segments, slash);
            Ok(())
        })
    }

    /// Path and query of `uri` instead of what was set before. It counts from the server's root: of
    /// an address such as `https://proxy/clusters/c1` the path does not precede it.
    pub fn request_uri(self, uri: &str) -> Self {
        self.change(|request| {
            let wrong = |why: &str| format!("`{uri}` is no request URI: {why}");
            let parsed: http::Uri = uri.parse().map_err(|error| wrong(&format!("{error}")))?;
            if !parsed.path().starts_with('/') {
                return Err(wrong("its path does not begin with a slash"));
            }
            let path = parsed.path().trim_end_matches('/');
            request.address.front =
                Front::Uri(if path.is_empty() { "/".into() } else { parsed.path().into() });
            request.extra.from_root = true;
            let parameters = params::parse(parsed.query().unwrap_or_default());
            request.params.retain(|(old, _)| !parameters.iter().any(|(new, _)| new == old));
            request.params.extend(parameters);
            Ok(())
        })
    }

    /// The namespace. An empty one counts as set: it adds nothing to the path, and a request about
    /// one object is refused before it is sent.
    pub fn namespace(self, namespace: &str) -> Self {
        self.change(|request| {
            check_segment("namespace", namespace)?;
            once("the namespace", &mut request.address.namespace, namespace.to_owned())?;
            request.address.scope = Some(Scope::Namespaced);
            Ok(())
        })
    }

    /// The namespace, if the kind lives in namespaces.
    pub fn namespace_if_scoped(mut self, namespace: &str, scoped: bool) -> Self {
        if scoped {
            return self.namespace(namespace);
        }
        if self.mistake.is_none() {
            self.address.scope = Some(Scope::Cluster);
        }
        self
    }

    /// The resource, in the plural, such as `deployments`; it is put into lower case.
    pub fn resource(self, resource: &str) -> Self {
        self.change(|request| {
            check_segment("resource", resource)?;
            if resource.is_empty() {
                return Err("the resource is empty; name one, such as `pods`".to_owned());
            }
            once("the resource", &mut request.address.resource, resource.to_owned())
        })
    }

    /// The object's name.
    pub fn name(self, name: &str) -> Self {
        self.change(|request| {
            if name.is_empty() {
                return Err("the resource name may not be empty; leave `name` out for the whole \
                            collection"
                    .to_owned());
            }
            check_segment("name", name)?;
            once("the name", &mut request.address.name, name.to_owned())
        })
    }

    /// The subresource, such as `["status"]`, perhaps of several segments.
    pub fn subresource<S: AsRef<str>>(self, segments: impl IntoIterator<Item = S>) -> Self {
        let segments = owned(segments);
        self.change(|request| {
            for segment in &segments {
                check_segment("subresource", segment)?;
            }
            once("the subresource", &mut request.address.subresource, segments)
        })
    }
}

/// What it carries.
impl Request {
    /// Adds a query parameter; the same name may be added several times.
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

    /// Adds the members of `options`, such as `ListOptions`, as query parameters: texts, numbers and
    /// booleans as they are, a list as several parameters of one name, `null` not at all.
    pub fn versioned_params<T: Serialize>(self, options: &T) -> Self {
        self.change(|request| {
            request.params.extend(params::of(options)?);
            Ok(())
        })
    }

    /// Sets a header to these values, instead of earlier ones.
    pub fn header<S: AsRef<str>>(self, name: &str, values: impl IntoIterator<Item = S>) -> Self {
        let values = owned(values);
        self.change(|request| {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{name}` is no name of a header"))?;
            request.headers.remove(&name);
            for value in values {
                // The value may be a secret, so the text does not show it.
                let value = HeaderValue::from_str(&value)
                    .map_err(|_| format!("the value of header `{name}` fits no HTTP header"))?;
                request.headers.append(name.clone(), value);
            }
            Ok(())
        })
    }

    /// Content type of the body. Default: the client's.
    pub fn content_type(self, media_type: &str) -> Self {
        self.header(CONTENT_TYPE.as_str(), [media_type])
    }

    /// Media types of the answer. Default: the client's.
    pub fn accept(self, media_types: &str) -> Self {
        self.header(ACCEPT.as_str(), [media_types])
    }

    /// The body.
    pub fn body(self, body: impl Into<Body>) -> Self {
        let body = body.into();
        self.change(|request| {
            request.content = Content::of(body)?;
            Ok(())
        })
    }

    /// The content of a file as body; see [`Body::File`].
    pub fn body_file(self, path: impl Into<PathBuf>) -> Self {
        self.body(Body::File(path.into()))
    }

    /// An object as body; see [`Body::object`].
    pub fn object<T: Serialize>(self, object: &T) -> Self {
        self.body(Body::object(object))
    }
}

/// How it is sent.
impl Request {
    /// Total time for the call with all its retries; for a stream or watch up to its first byte. The
    /// server is told too, by the query parameter `timeout`, unless it is zero, which is the client's
    /// default again.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.change(|request| {
            request.timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
            Ok(())
        })
    }

    /// Largest answer that [`send`](Self::send) reads, in bytes, decoded, and largest event of a
    /// [`watch`](Self::watch). Default: the client's (64 MiB), and 16 MiB for an event.
    pub fn answer_limit(self, bytes: usize) -> Self {
        self.change(|request| {
            request.answer_limit = Some(bytes);
            Ok(())
        })
    }

    /// Waits for permits of `limiter` instead of the client's.
    pub fn throttle(self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.change(|request| {
            request.extra.limiter = Some(limiter);
            Ok(())
        })
    }

    /// Backs off as `manager` says, instead of the client's.
    pub fn backoff(self, manager: Arc<dyn BackoffManager>) -> Self {
        self.change(|request| {
            request.extra.backoff = Some(manager);
            Ok(())
        })
    }

    /// Tells warnings to `handler` instead of the client's.
    pub fn warning_handler(self, handler: Arc<dyn WarningHandler>) -> Self {
        self.change(|request| {
            request.extra.warnings = Some(handler);
            Ok(())
        })
    }

    /// Tries again at most so often; 0 is one attempt. Default: 10.
    pub fn max_retries(self, retries: u32) -> Self {
        self.change(|request| {
            request.extra.max_retries = Some(retries);
            Ok(())
        })
    }

    /// Says that sending it twice does no harm, as of a replace that carries a resourceVersion: it
    /// is then tried again after failures that leave its fate unknown. Reads and applies always are.
    pub fn repeatable(self) -> Self {
        self.change(|request| {
            request.repeatable = true;
            Ok(())
        })
    }

    /// Says that the caller tries again by itself, as caches do; see
    /// [`Prepared::background`](super::Prepared::background).
    pub fn background(self) -> Self {
        self.change(|request| {
            request.background = true;
            Ok(())
        })
    }

    /// What is tried, for error texts, such as `run a command in pod "a"`. Default: from the parts.
    pub fn describe(self, what: &str) -> Self {
        self.change(|request| {
            request.words = Some(what.to_owned());
            Ok(())
        })
    }

    /// Applies a setter, unless there was a mistake before it.
    fn change(mut self, set: impl FnOnce(&mut Self) -> Result<(), String>) -> Self {
        if self.mistake.is_none()
            && let Err(mistake) = set(&mut self)
        {
            self.mistake = Some(mistake);
        }
        self
    }
}

/// Sets what may be set once.
fn once<T: fmt::Debug>(what: &str, slot: &mut Option<T>, value: T) -> Result<(), String> {
    if let Some(old) = slot {
        return Err(format!("{what} is set already, to {old:?}, and cannot be {value:?} as well"));
    }
    *slot = Some(value);
    Ok(())
}

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
