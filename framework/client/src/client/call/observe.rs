//! The verdict of RBAC about each request: named in errors, and passed to an observer.

use std::fmt;

use crate::client::Client;
use crate::client::request::Prepared;
use windlass_core::error::Error;
use windlass_core::rbac::verb_name;

/// A request on which the API server has decided.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct ObservedRequest<'a> {
    /// The verb as RBAC prints it, by the request.
    pub verb: &'static str,
    /// HTTP method.
    pub method: &'a str,
    /// Path below the server's address, percent-encoded.
    pub path: &'a str,
    /// Kind of the object, if the request is about a known kind.
    pub kind: Option<&'a str>,
    /// Whether it is an apply, which needs `create` as well when it creates.
    pub is_apply: bool,
    /// The verb that RBAC did not permit; `None` for a permitted request.
    pub refused: Option<&'a str>,
}

/// A listener for the requests of a client handle and of the handles made from it.
#[doc(hidden)]
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// Called once for each request that the API server answered; must return quickly.
    fn answered(&self, request: ObservedRequest<'_>);
}

impl Client {
    /// Adds the missing grant to the error of a request that RBAC refused, and passes the request
    /// to the observer. A request without an answer of the API server is not passed.
    pub(super) fn judged<T>(
        &self,
        request: &Prepared,
        result: Result<T, Error>,
    ) -> Result<T, Error> {
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
                kind: request.extra.kind.as_deref(),
                is_apply: request.verb == windlass_core::resource::Verb::Apply,
                refused: refused.as_deref(),
            });
        }
        result
    }
}

/// Adds the grant as `can(…)` of a controller has it.
fn named(error: Error, request: &Prepared, verb: &str) -> Error {
    match &request.extra.kind {
        Some(kind) => error.with_missing_grant(&format!("{verb} {kind}")),
        None => error,
    }
}

/// Returns the verb that RBAC did not permit; `None` for another error, and for a 403 of an
/// admission plugin. It can differ from the request's own: an apply that creates needs `create`.
fn missing_verb(error: &Error) -> Option<String> {
    let status = error.status().filter(|_| error.is_forbidden())?;
    let (_, behind) = status.message.split_once(" cannot ")?;
    let (verb, target) = behind.split_once(' ')?;
    let is_verb = verb.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_target = target.starts_with("resource \"") || target.starts_with("path \"");
    (is_verb && is_target).then(|| verb.to_owned())
}
