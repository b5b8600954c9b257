//! Who sent a request: a connection's own user, a bearer token's, or nobody in particular.
//!
//! The connection (a client certificate, or memory) comes first, then the token; a wrong token is
//! refused, none at all makes an anonymous user. Absent: tokens of service accounts.

use std::sync::{Arc, Weak};

use http::header::AUTHORIZATION;
use http::request::Parts;

use super::tokens::Tokens;
use super::{Authenticator, Identity, User, impersonate};
use crate::core::Core;
use crate::status::ApiError;

/// Everybody who proved who they are.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// Finds users by connection and token, and lets some act as others.
#[derive(Debug)]
pub(crate) struct Authentication {
    tokens: Arc<Tokens>,
    core: Weak<Core>,
}

impl Authentication {
    /// Knows these tokens; asks the server's authorizer who may impersonate.
    pub(crate) fn new(tokens: Arc<Tokens>, core: Weak<Core>) -> Self {
        Self { tokens, core }
    }
}

/// Adds the group of those who proved who they are.
pub(super) fn authenticated(mut user: User) -> User {
    if user.name != ANONYMOUS && !user.groups.iter().any(|group| group == AUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

const ANONYMOUS: &str = "system:anonymous";

fn bearer(request: &Parts) -> Option<&str> {
    let header = request.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Authenticator for Authentication {
    fn authenticate(&self, request: &Parts, connection: &Identity) -> Result<User, ApiError> {
        let user = match (&connection.user, bearer(request)) {
            (Some(user), _) => authenticated(user.clone()),
            (None, Some(token)) => self.token(token).ok_or_else(ApiError::unauthorized)?,
            (None, None) => User::new(ANONYMOUS, &["system:unauthenticated"]),
        };
        match self.core.upgrade() {
            Some(core) => impersonate::apply(&core, user, request),
            None => Ok(user),
        }
    }

    fn token(&self, token: &str) -> Option<User> {
        self.tokens.find(token).map(authenticated)
    }
}
