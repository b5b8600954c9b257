//! The authorizer that expressions of admission ask: a trait, so that the caller decides how
//! requests are answered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::functions::authorizer as values;
use super::value::Value;

/// Decides on requests that expressions ask about: RBAC of a server, or a table of a test.
///
/// A panic of an authorizer goes through to the caller of the evaluation. A check costs 350,000 of
/// the expression's budget, whatever the decision takes, as in kube-apiserver.
pub trait Authorizer: fmt::Debug + Send + Sync {
    /// The decision on a request.
    fn authorize(&self, request: &AuthorizationRequest<'_>) -> Authorization;
}

/// A user, as a request's authentication found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserInfo {
    /// Name of the user: `system:serviceaccount:default:builder`.
    pub name: String,
    /// Identity of the user; empty if there is none.
    pub uid: String,
    /// Groups of the user.
    pub groups: Vec<String>,
    /// Further facts of the authentication.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// The user of a service account, with the groups of all accounts and of the accounts of the
    /// namespace.
    pub fn service_account(namespace: &str, name: &str) -> UserInfo {
        UserInfo {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
            ..UserInfo::default()
        }
    }
}

/// A request that an expression asks about.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest<'a> {
    /// The user that would send the request.
    pub user: &'a UserInfo,
    /// The verb: `get`, `create`.
    pub verb: &'a str,
    /// The path or resource.
    pub target: AuthorizationTarget<'a>,
}

/// The target of a request.
#[derive(Debug, Clone, Copy)]
pub enum AuthorizationTarget<'a> {
    /// A path that belongs to no resource: `/healthz`.
    Path(&'a str),
    /// A resource, in any version.
    Resource(&'a ResourceAttributes),
}

/// The resource of a request; an empty field stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceAttributes {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural name: `deployments`.
    pub resource: String,
    /// `status`, `scale`
    pub subresource: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Field selector as the expression gives it; kube-apiserver ignores a selector that cannot be
    /// parsed.
    pub field_selector: String,
    /// Label selector as the expression gives it; kube-apiserver ignores a selector that cannot be
    /// parsed.
    pub label_selector: String,
}

/// Answer of an authorizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorization {
    /// The decision.
    pub decision: Decision,
    /// The reason for `reason()`; may be empty.
    pub reason: String,
    /// A fault on the way to the decision, for `errored()` and `error()`.
    pub error: Option<String>,
}

/// A decision; only `Allow` is `allowed()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The request is allowed.
    Allow,
    /// The request is denied.
    Deny,
    /// The authorizer does not decide; that is no permission.
    NoOpinion,
}

/// The value of the variable `authorizer`, for requests of this user.
pub fn authorizer_value(authorizer: Arc<dyn Authorizer>, user: UserInfo) -> Value<'static> {
    values::authorizer(authorizer, user)
}

/// The value of the variable `authorizer.requestResource`: a check of the resource that is
/// requested.
pub fn request_resource_value(
    authorizer: Arc<dyn Authorizer>,
    user: UserInfo,
    resource: ResourceAttributes,
) -> Value<'static> {
    values::resource_check(authorizer, user, resource)
}
