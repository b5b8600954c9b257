//! Observers of requests: the verdict of RBAC about each, which errors name, and the answers to dry
//! runs.

// DESIGN.md, 165: A plan is the real reconcile over a client that only makes dry runs

use std::fmt;

use bytes::Bytes;
use percent_encoding::percent_decode_str;

use crate::client::Client;
use crate::client::request::{ApiPath, Prepared, Response};
use windlass_core::error::Error;
use windlass_core::rbac::verb_name;
use windlass_core::resource::Verb;

/// A request on which the API server has decided.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct ObservedRequest<'a> {
    /// The verb as printed by RBAC, by the request.
    pub verb: &'static str,
    /// HTTP method.
    pub method: &'a str,
    /// Path below the server's address, percent-encoded.
    pub path: &'a str,
    /// Field selector of a list or watch, as written.
    pub field_selector: Option<&'a str>,
    /// Kind of the object, if the request is about a known kind.
    pub kind: Option<&'a str>,
    /// Whether the request is an apply, which also needs `create` for a new object.
    pub is_apply: bool,
    /// The verb that RBAC did not permit; `None` for a permitted request.
    pub refused: Option<&'a str>,
    /// Body as it was sent.
    pub body: &'a [u8],
    /// Code of an answer that is an error.
    pub failed: Option<u16>,
}

/// A listener for the requests of a client handle and of the handles made from it.
#[doc(hidden)]
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// Called once for each request that the API server answered; must return quickly.
    fn answered(&self, request: ObservedRequest<'_>);
}

/// A write that was sent as a dry run, and answered without an error. `Debug` shows no contents.
#[derive(Clone)]
#[doc(hidden)]
pub struct DryRunResponse {
    pub verb: Verb,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name of the resource.
    pub resource: String,
    pub namespace: Option<String>,
    /// Name in the path; `None` for a creation, and for a whole collection.
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// Path of the object or of the collection, without the subresource.
    pub path: String,
    /// Selectors of a deletion of a collection.
    pub selectors: Vec<(String, String)>,
    /// Body as sent.
    pub body: Bytes,
    /// Status code: 201 for a creation.
    pub code: u16,
    pub answer: Bytes,
}

/// A listener for the dry runs of a client handle and of the handles made from it.
#[doc(hidden)]
pub trait DryRunObserver: fmt::Debug + Send + Sync {
    /// Called once for each write that the API server answered without an error; must return
    /// quickly.
    fn answered(&self, dry_run: DryRunResponse);

    /// Called once for each read of a resource, whatever its answer, with a text such as
    /// `get secrets shop/tls`; must return quickly.
    fn read(&self, text: String) {
        let _ = text;
    }
}

impl fmt::Debug for DryRunResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, path, subresource, code, .. } = self;
        write!(f, "{} {path} {subresource:?}: {code}", verb.as_str())
    }
}

impl DryRunResponse {
    /// Returns the dry run of a request; `None` for a path that is no object of the API, which a
    /// handle for dry runs refuses anyway.
    fn of(path: &str, request: &Prepared, response: &Response) -> Option<Self> {
        let place = ApiPath::of(path)?;
        let text = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let group = match place.root.split('/').collect::<Vec<_>>()[..] {
            ["", "apis", group, _] => text(group),
            _ => String::new(),
        };
        let mut parts = place.rest.split('/');
        if place.namespace.is_some() {
            parts.nth(1);
        }
        let resource = parts.next()?;
        let name = parts.next().filter(|name| !name.is_empty());
        let within = place.namespace.map(|namespace| format!("/namespaces/{namespace}"));
        let object = name.map(|name| format!("/{name}")).unwrap_or_default();
        let selectors = request.query.iter().filter(|(name, _)| name.ends_with("Selector"));
        Some(Self {
            verb: request.verb,
            group,
            resource: text(resource),
            namespace: place.namespace.map(text),
            name: name.map(text),
            subresource: place.subresource().map(text),
            path: format!("{}{}/{resource}{object}", place.root, within.unwrap_or_default()),
            selectors: selectors.map(|(name, value)| (name.to_string(), value.clone())).collect(),
            body: request.body.clone(),
            code: response.status.as_u16(),
            answer: response.body.clone(),
        })
    }
}

impl Client {
    /// Returns a handle for dry runs only, as [`dry_run`](Self::dry_run), whose answers are passed
    /// to `observer`.
    #[doc(hidden)]
    #[must_use]
    pub fn dry_run_observed(&self, observer: std::sync::Arc<dyn DryRunObserver>) -> Self {
        Self { dry_runs: Some(observer), ..self.dry_run() }
    }

    /// Passes the answer to a dry run to the observer.
    pub(super) fn observe_dry_run(&self, request: &Prepared, response: &Response) {
        let Some(observer) = self.dry_runs.as_ref().filter(|_| request.verb.writes()) else {
            return;
        };
        let path = self.below(request);
        if let Some(it) = path.and_then(|path| DryRunResponse::of(path, request, response)) {
            observer.answered(it);
        }
    }

    /// Adds the missing grant to the error of a request that RBAC refused, and passes the request
    /// to the observer. A request without an answer of the API server is not passed.
    pub(super) fn judged<T>(
        &self,
        request: &Prepared,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(observer) = self.dry_runs.as_ref().filter(|_| !request.verb.writes())
            && let Some(text) = self.below(request).and_then(|path| read_text(request.verb, path))
        {
            observer.read(text);
        }
        let (result, refused) = match result {
            Err(error) => match missing_verb(&error) {
                Some(verb) => (Err(named(error, request, &verb)), Some(verb)),
                // Authentication comes before authorization.
                None if error.status().is_none() || error.code() == Some(401) => return Err(error),
                None => (Err(error), None),
            },
            result => (result, None),
        };
        if let Some(observer) = &self.observer {
            observer.answered(ObservedRequest {
                verb: verb_name(request.verb),
                method: request.method.as_str(),
                path: &request.path,
                field_selector: request
                    .query
                    .iter()
                    .find_map(|(name, value)| (name == "fieldSelector").then_some(value.as_str())),
                kind: request.extra.kind.as_deref(),
                is_apply: request.verb == windlass_core::resource::Verb::Apply,
                refused: refused.as_deref(),
                body: &request.body,
                failed: result.as_ref().err().and_then(Error::code),
            });
        }
        result
    }
}

/// Returns the text of a read: verb, resource, namespace and name; `None` for another path.
fn read_text(verb: Verb, path: &str) -> Option<String> {
    let place = ApiPath::of(path)?;
    let text = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
    let mut parts = place.rest.split('/');
    if place.namespace.is_some() {
        parts.nth(1);
    }
    let resource = text(parts.next()?);
    let resource = match place.root.split('/').collect::<Vec<_>>()[..] {
        ["", "apis", group, _] => format!("{resource}.{}", text(group)),
        _ => resource,
    };
    let name = parts.next().map(text).unwrap_or_default();
    let namespace = place.namespace.map(|namespace| format!("{}/", text(namespace)));
    let text = format!("{} {resource} {}{name}", verb_name(verb), namespace.unwrap_or_default());
    Some(text.trim_end().to_owned())
}

/// Adds the grant as `can(…)` of a controller has it.
fn named(error: Error, request: &Prepared, verb: &str) -> Error {
    match &request.extra.kind {
        Some(kind) => error.with_missing_grant(&format!("{verb} {kind}")),
        None => error,
    }
}

/// Returns the verb that RBAC did not permit; `None` for another error, and for a 403 of an
/// admission plugin. This verb can differ from the request's verb: an apply that creates needs
/// `create`.
fn missing_verb(error: &Error) -> Option<String> {
    let status = error.status().filter(|_| error.is_forbidden())?;
    let (_, behind) = status.message.split_once(" cannot ")?;
    let (verb, target) = behind.split_once(' ')?;
    let is_verb = verb.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_target = target.starts_with("resource \"") || target.starts_with("path \"");
    (is_verb && is_target).then(|| verb.to_owned())
}
