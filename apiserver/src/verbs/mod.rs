//! Execution of requests: a module per verb, the same for every kind.
//!
//! All verbs run without waiting; only watches and reads of future versions wait, and those live
//! beside the HTTP code. A verb that needs a webhook's answer is suspended and runs again with that
//! answer (see `suspend`). Transport is handled elsewhere.

pub(crate) mod actions;
pub(crate) mod addresses;
pub(crate) mod admit;
pub(crate) mod apiservices;
pub(crate) mod bootstrap;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod delete;
pub(crate) mod fields;
pub(crate) mod flow;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod patch;
pub(crate) mod reviews;
pub(crate) mod scale;
pub(crate) mod subresources;
pub(crate) mod suspend;
pub(crate) mod update;
pub(crate) mod watch;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::auth::User;
use crate::core::ServerCore;
use crate::hooks::WebhookSession;
use crate::kinds::Kind;
use crate::status::{ApiError, FailureSubject};
use crate::storage::{self, StoredObject};
use options::WriteOptions;
use suspend::convert;

/// A decoded request for a resource.
#[derive(Clone, Debug)]
pub(crate) struct VerbCall {
    /// The kind in the version of the URL.
    pub(crate) kind: Arc<Kind>,
    /// Namespace; empty for cluster-wide kinds and lists of all namespaces.
    pub(crate) namespace: String,
    /// Name; empty for collections.
    pub(crate) name: String,
    /// Subresource; may be empty.
    pub(crate) subresource: String,
    /// The user that sent the request.
    pub(crate) user: User,
    /// Options of writes.
    pub(crate) options: WriteOptions,
    /// Questions to webhooks and their answers.
    pub(crate) session: Arc<WebhookSession>,
}

/// A successful answer with an object.
#[derive(Clone)]
pub(crate) struct ObjectResponse {
    /// HTTP status.
    pub(crate) code: u16,
    /// The object.
    pub(crate) value: Value,
    /// Warnings about the object, as those of broken rules that are tolerated.
    pub(crate) warnings: Vec<String>,
}

impl fmt::Debug for ObjectResponse {
    /// Writes the answer without the object, which may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectResponse").field("code", &self.code).finish_non_exhaustive()
    }
}

impl ObjectResponse {
    /// Returns an answer with status 200.
    pub(crate) fn ok(value: Value) -> Self {
        Self { code: 200, value, warnings: Vec::new() }
    }

    /// Returns an answer with status 201.
    pub(crate) fn created(value: Value) -> Self {
        Self { code: 201, ..Self::ok(value) }
    }

    /// Adds warnings.
    pub(crate) fn warned(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

impl VerbCall {
    /// Returns a call by the server, for bootstrapping and controllers.
    pub(crate) fn by_server(
        core: &ServerCore,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Self, ApiError> {
        let kind = core.kind(group, resource).ok_or_else(ApiError::no_resource)?;
        let options =
            WriteOptions { manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
        Ok(Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            user: User::server(),
            options,
            session: Arc::default(),
        })
    }

    /// Returns the time of the request, which stays the same when a suspended verb runs again.
    pub(crate) fn now(&self, core: &ServerCore) -> String {
        self.session.now(|| core.clock.rfc3339())
    }

    /// Returns the object's key in the store.
    pub(crate) fn key(&self) -> String {
        storage::key(&self.namespace, &self.name)
    }

    /// Returns the subject of failures about the resource.
    pub(crate) fn about(&self) -> FailureSubject<'_> {
        FailureSubject::resource(&self.kind.served, &self.name)
    }

    /// Returns the 404 for the object.
    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.about())
    }

    /// Returns the subresource for managed fields.
    pub(crate) fn tracked_subresource(&self) -> Option<&str> {
        Some(self.subresource.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns the object in the store, or a 404.
    pub(crate) fn find(&self, core: &ServerCore) -> Result<Arc<StoredObject>, ApiError> {
        core.store.get(&self.kind.storage, &self.key()).ok_or_else(|| self.not_found())
    }
}

/// Executes a GET of an object.
pub(crate) fn get(core: &ServerCore, call: &VerbCall) -> Result<ObjectResponse, ApiError> {
    let held = call.find(core)?;
    Ok(ObjectResponse::ok(convert::shown(core, call, &held.value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn debug_output_shows_no_object() {
        let secret = json!({"data": {"k": "c2VjcmV0"}});
        let answer = ObjectResponse::ok(secret.clone());
        assert!(!format!("{answer:?}").contains("c2VjcmV0"));
        assert!(!format!("{:?}", decode::Body::from(secret)).contains("c2VjcmV0"));
    }
}
