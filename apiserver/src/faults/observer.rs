//! Observers: code of a test that sees every request and every change at its moment, and decides on
//! faults then.

use std::fmt;

use serde_json::Value;

use super::{FaultAction, MatchedRequest};

/// A test's own judge of requests and changes. Both methods run inside the server and must return
/// quickly; they may use the server's [`Faults`](super::Faults).
pub trait Observer: fmt::Debug + Send + Sync {
    /// Called once for each request of a known user, before execution. The returned actions follow
    /// those of the added faults. Writes by [`ApiServer::commit`](crate::ApiServer::commit) are
    /// allowed.
    fn request(&self, request: &ObservedRequest<'_>) -> Vec<FaultAction> {
        let _ = request;
        Vec::new()
    }

    /// Called for each write, before any watch delivers the event. The store is locked: a call that
    /// reads or writes objects would wait for ever.
    fn changed(&self, change: &ObservedChange<'_>) {
        let _ = change;
    }
}

/// A request in the view of an [`Observer`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ObservedRequest<'a> {
    /// Verb, or the lower-case method for paths without a resource.
    pub verb: &'a str,
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Plural of the resource; empty for paths without one.
    pub resource: &'a str,
    /// Subresource; empty for the object.
    pub subresource: &'a str,
    /// Namespace; empty for cluster-wide requests.
    pub namespace: &'a str,
    /// Name of the object; empty for collections and most creations.
    pub name: &'a str,
    /// `User-Agent` header.
    pub agent: &'a str,
    /// Name of the user.
    pub user: &'a str,
}

impl<'a> ObservedRequest<'a> {
    /// Returns the part of a request that an observer sees.
    pub(super) fn of(subject: &MatchedRequest<'a>) -> Self {
        let MatchedRequest {
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            path: _,
            agent,
            user,
        } = *subject;
        Self { verb, group, resource, subresource, namespace, name, agent, user }
    }
}

/// A write in the view of an [`Observer`].
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ObservedChange<'a> {
    /// Name under which the resource is stored: the plural, for custom resources with the group
    /// behind the plural.
    pub resource: &'a str,
    /// User whose request made the change; `None` for the server's own controllers and writes
    /// without a request.
    pub user: Option<&'a str>,
    /// resourceVersion of the write.
    pub revision: u64,
    /// State before the write; `None` for a creation.
    pub before: Option<&'a Value>,
    /// State after the write; `None` for a deletion.
    pub after: Option<&'a Value>,
}

/// Shows no contents: the object may be a Secret.
impl fmt::Debug for ObservedChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservedChange")
            .field("resource", &self.resource)
            .field("user", &self.user)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}
