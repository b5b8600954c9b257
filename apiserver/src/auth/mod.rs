//! Users and their rights: the hooks for authentication and authorization.
//!
//! Handlers see only a [`User`] and an [`Authorizer`]. The two installed hooks decide how a user is
//! found (certificates, tokens) and which rules hold (RBAC).

pub(crate) mod accounts;
pub(crate) mod identity;
mod jwt;
pub(crate) mod rights;
pub(crate) mod signer;
mod tokens;

use std::collections::BTreeMap;

use http::request::Parts;
use serde_json::Value;

use crate::status::ApiError;

pub(crate) use tokens::Tokens;

/// Group of all users that have proved their identity.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// Group of requests without credentials.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// User of requests without credentials.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name, such as `system:admin`.
    pub name: String,
    /// Groups, such as `system:masters`.
    pub groups: Vec<String>,
    /// Unique id; empty when unknown.
    pub uid: String,
    /// More attributes, as token reviews show them.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Returns a user with a name and groups, without uid and extra attributes.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Returns the administrator of in-memory connections.
    pub fn admin() -> Self {
        // A master: RBAC allows everything without reading the roles.
        Self::new("system:admin", &["system:masters", AUTHENTICATED])
    }

    /// Adds the group of all authenticated users, except to the anonymous user.
    pub(crate) fn authenticated(mut self) -> Self {
        if self.name != ANONYMOUS && !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }

    /// Returns the user of the server's own writes.
    pub(crate) fn server() -> Self {
        Self::new("system:apiserver", &["system:masters"])
    }
}

/// The identity that a connection proved before the first request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionIdentity {
    /// The user, if the connection itself proves it (in memory, client certificate).
    pub(crate) user: Option<User>,
    /// Whether the connection has a certificate that could not be verified.
    pub(crate) is_refused: bool,
}

/// The reason that is given for a token that was never issued.
pub(crate) const INVALID_TOKEN: &str = "invalid bearer token";

/// The user of a bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenUser {
    /// The user.
    pub(crate) user: User,
    /// Those of the wanted audiences that the token is meant for.
    pub(crate) audiences: Vec<String>,
}

/// Authentication: finds the user of a request.
pub(crate) trait Authenticator: Send + Sync {
    /// Returns the user, or the answer to a request without a valid user. Removes a token from the
    /// subprotocols.
    fn authenticate(
        &self,
        request: &mut Parts,
        connection: &ConnectionIdentity,
    ) -> Result<User, ApiError>;

    /// Returns the user that proved an identity, also if acting as another user. Removes a token
    /// from the subprotocols.
    fn caller(
        &self,
        request: &mut Parts,
        connection: &ConnectionIdentity,
    ) -> Result<User, ApiError> {
        self.authenticate(request, connection)
    }

    /// Returns the user of a bearer token that is meant for one of the audiences.
    ///
    /// # Errors
    /// The reason why the token does not count, in the words of token reviews.
    fn token(&self, _token: &str, _audiences: &[String]) -> Result<TokenUser, String> {
        Err(INVALID_TOKEN.to_owned())
    }
}

/// Takes the user of the connection, and refuses requests on connections without a user.
#[derive(Debug)]
pub(crate) struct ByConnection;

impl Authenticator for ByConnection {
    fn authenticate(
        &self,
        _request: &mut Parts,
        connection: &ConnectionIdentity,
    ) -> Result<User, ApiError> {
        connection.user.clone().ok_or_else(ApiError::unauthorized)
    }
}

/// The subject of an authorization check: a verb on a resource or a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// `get`, `list`, `watch`, `create`, … or the lower-case method for paths.
    pub(crate) verb: String,
    /// API group.
    pub(crate) group: String,
    /// API version.
    pub(crate) version: String,
    /// Plural; empty for a check of a path.
    pub(crate) resource: String,
    /// Subresource; may be empty.
    pub(crate) subresource: String,
    /// Namespace; may be empty.
    pub(crate) namespace: String,
    /// Name; may be empty.
    pub(crate) name: String,
    /// The path of the URL.
    pub(crate) path: String,
}

/// Authorization: decides whether a user may do something.
pub(crate) trait Authorizer: Send + Sync {
    /// Returns `Ok` if allowed, else the reason of the refusal (may be empty).
    fn authorize(&self, user: &User, attributes: &Attributes) -> Result<(), String>;

    /// Same check as `authorize`, with the reason why the request is allowed (may be empty).
    fn explain(&self, user: &User, attributes: &Attributes) -> Result<String, String> {
        self.authorize(user, attributes).map(|()| String::new())
    }

    /// Returns all rules that hold for a user in a namespace, in the form of RBAC's.
    fn rules(&self, _user: &User, _namespace: &str) -> Vec<Value> {
        Vec::new()
    }
}

/// Allows every request of every user.
#[derive(Debug)]
pub(crate) struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, _user: &User, _attributes: &Attributes) -> Result<(), String> {
        Ok(())
    }
}

/// Returns the 403 for a refused request.
pub(crate) fn refusal(user: &User, wanted: &Attributes, why: &str) -> ApiError {
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    // A path has no group, resource or namespace to name.
    if wanted.resource.is_empty() {
        let text =
            format!("User {:?} cannot {} path {:?}{why}", user.name, wanted.verb, wanted.path);
        return ApiError::forbidden_path(&text);
    }
    let resource = if wanted.subresource.is_empty() {
        wanted.resource.clone()
    } else {
        format!("{}/{}", wanted.resource, wanted.subresource)
    };
    let scope = if wanted.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {:?}", wanted.namespace)
    };
    let text = format!(
        "User {:?} cannot {} resource {resource:?} in API group {:?} {scope}{why}",
        user.name, wanted.verb, wanted.group
    );
    let about = crate::status::FailureSubject {
        group: &wanted.group,
        kind: &wanted.resource,
        name: &wanted.name,
    };
    ApiError::forbidden(about, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_user_verb_resource_and_scope() {
        let user = User::new("alice", &[]);
        let mut wanted = Attributes {
            verb: "list".into(),
            resource: "configmaps".into(),
            namespace: "default".into(),
            ..Attributes::default()
        };
        assert_eq!(
            refusal(&user, &wanted, "").message(),
            "configmaps is forbidden: User \"alice\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"default\""
        );
        wanted = Attributes {
            verb: "get".into(),
            group: "apps".into(),
            resource: "deployments".into(),
            subresource: "scale".into(),
            name: "x".into(),
            ..Attributes::default()
        };
        assert_eq!(
            refusal(&user, &wanted, "").message(),
            "deployments.apps \"x\" is forbidden: User \"alice\" cannot get resource \"deployments/scale\" in API group \"apps\" at the cluster scope"
        );
        wanted =
            Attributes { verb: "get".into(), path: "/metrics".into(), ..Attributes::default() };
        assert_eq!(
            refusal(&user, &wanted, "").message(),
            "forbidden: User \"alice\" cannot get path \"/metrics\""
        );
    }
}
