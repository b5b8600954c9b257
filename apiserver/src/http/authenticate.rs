//! Authentication: the user of a connection, of a bearer token, or the anonymous user.
//!
//! The connection (a client certificate, or memory) comes first, then the token. A wrong token is
//! refused; without a token the user is anonymous.

use std::sync::{Arc, Weak};

use http::header::AUTHORIZATION;
use http::request::Parts;

use super::impersonate;
use crate::auth::{
    ANONYMOUS, Authenticator, ConnectionIdentity, INVALID_TOKEN, Identified, Tokens,
    UNAUTHENTICATED, User,
};
use crate::core::Core;
use crate::status::ApiError;
use crate::verbs::subresources::accounts;

/// Longest bearer token that is looked at, in bytes.
const LONGEST: usize = 16 * 1024;

/// Finds users by connection and token, and lets some users act as others.
#[derive(Debug)]
pub(crate) struct Authentication {
    /// Users by bearer token.
    tokens: Arc<Tokens>,
    /// The server, whose authorizer decides about impersonation.
    core: Weak<Core>,
    /// The modes of the last impersonations.
    modes: impersonate::LastModes,
}

impl Authentication {
    /// Returns an authenticator with these tokens; the server's authorizer decides about
    /// impersonation.
    pub(crate) fn new(tokens: Arc<Tokens>, core: Weak<Core>) -> Self {
        Self { tokens, core, modes: impersonate::LastModes::default() }
    }
}

/// Returns the bearer token of a request. One that cannot be read is a wrong token, and not none: without
/// a token the client would be anonymous.
fn bearer(request: &Parts) -> Option<&str> {
    const UNREADABLE: &str = "Bearer \u{fffd}";
    let header = request.headers.get(AUTHORIZATION)?.to_str().unwrap_or(UNREADABLE);
    let (scheme, token) = header.trim().split_once(' ')?;
    let token = token.trim();
    // Schemes of HTTP authentication are case-insensitive.
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

impl Authenticator for Authentication {
    fn authenticate(
        &self,
        request: &Parts,
        connection: &ConnectionIdentity,
    ) -> Result<User, ApiError> {
        let user = match (&connection.user, bearer(request)) {
            // First: a client with a certificate may send a token as well, which then does not
            // count.
            (Some(user), _) => user.clone().authenticated(),
            (None, Some(token)) => {
                let audiences = self.core.upgrade().map(|core| core.issuer.audiences());
                // The reason stays here: only those who may review tokens learn it.
                let found = self.token(token, &audiences.unwrap_or_default());
                found.map_err(|_| ApiError::unauthorized())?.user
            }
            (None, None) => User::new(ANONYMOUS, &[UNAUTHENTICATED]),
        };
        // After authentication: the right to impersonate is that of the real user.
        match self.core.upgrade() {
            Some(core) => impersonate::apply(&core, &self.modes, user, request),
            None => Ok(user),
        }
    }

    fn token(&self, token: &str, audiences: &[String]) -> Result<Identified, String> {
        let invalid = || INVALID_TOKEN.to_owned();
        let core = self.core.upgrade().ok_or_else(invalid)?;
        if token.len() > LONGEST {
            return Err(invalid());
        }
        // Tokens of the file are meant for the server, and for nobody else.
        if let Some(user) = self.tokens.find(token) {
            let own = core.issuer.audiences();
            let audiences: Vec<String> =
                audiences.iter().filter(|wanted| own.contains(wanted)).cloned().collect();
            let known = !audiences.is_empty();
            let user = user.authenticated();
            return known.then_some(Identified { user, audiences }).ok_or_else(invalid);
        }
        accounts::identify(&core, token, audiences)?.ok_or_else(invalid)
    }
}
