//! The objects that a reflector reads, and their names in logs, metrics and errors.

use std::sync::Arc;

use super::expect::ExpectedKind;
use windlass_client::client::Verb;
use windlass_core::resource::ResourceInfo;

/// A kind in a single scope.
#[derive(Debug)]
pub(super) struct ReflectedKind {
    pub(super) info: ResourceInfo,
    pub(super) namespace: Option<Arc<str>>,
    /// Description for logs and errors: `pods in "shop"`.
    pub(super) what: String,
    /// Label of metrics: `deployments.apps`.
    pub(super) resource: String,
    /// Check of the objects' kind.
    pub(super) expected: ExpectedKind,
}

impl ReflectedKind {
    pub(super) fn new(info: ResourceInfo, namespace: Option<Arc<str>>, what: String) -> Self {
        let (expected, resource) = (ExpectedKind::new(&info), info.group_resource());
        Self { info, namespace, what, resource, expected }
    }

    /// Returns the text that names the missing right (A15: 401 or 403 after a change of
    /// permissions).
    pub(super) fn missing(&self, verb: Option<Verb>, why: &str) -> String {
        let Some(verb) = verb else {
            return format!("{why}; the API server does not accept the credentials");
        };
        let scope = match &self.namespace {
            Some(namespace) => format!(" in the namespace {namespace:?}"),
            None => String::new(),
        };
        let verb = verb.as_str();
        format!(
            "{why}; grant the verb {verb} on {}{scope} (a cache needs list and watch)",
            self.info
        )
    }
}
