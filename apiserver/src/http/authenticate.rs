//! Authentication: the user of a connection, of a bearer token, or the anonymous user.
//!
//! The connection (a client certificate, or memory) comes first, then the token of the header, then
//! that among the subprotocols of a WebSocket. Wrong tokens are refused; without a token the user
//! is anonymous.

use std::sync::{Arc, Weak};

use http::HeaderValue;
use http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use http::request::Parts;

use super::{impersonate, socket};
use crate::auth::{
    ANONYMOUS, Authenticator, ConnectionIdentity, INVALID_TOKEN, TokenUser, Tokens,
    UNAUTHENTICATED, User,
};
use crate::core::ServerCore;
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
    core: Weak<ServerCore>,
    /// Whether requests without credentials are refused.
    refuses_anonymous: bool,
    /// The modes of the last impersonations.
    modes: impersonate::LastModes,
}

impl Authentication {
    /// Returns an authenticator with these tokens; the server's authorizer decides about
    /// impersonation.
    pub(crate) fn new(
        tokens: Arc<Tokens>,
        core: Weak<ServerCore>,
        refuses_anonymous: bool,
    ) -> Self {
        Self { tokens, core, refuses_anonymous, modes: impersonate::LastModes::default() }
    }
}

impl Authentication {
    /// Returns the user of a token of the request; without a token the anonymous user, if allowed.
    fn by_token(&self, request: &mut Parts, is_refused: bool) -> Result<User, ApiError> {
        let audiences = self.core.upgrade().map(|core| core.issuer.audiences());
        let audiences = audiences.unwrap_or_default();
        // The reason stays here: only users who may review tokens learn the reason.
        let find = |token: &str| {
            self.token(token, &audiences).map_err(|_| ApiError::unauthorized()).map(|it| it.user)
        };
        let by_header = bearer(request).map(find);
        if let Some(Ok(user)) = by_header {
            return Ok(user);
        }
        // Also after a wrong token in the header, as upstream tries all ways.
        if let Some((token, others)) = socket::token(request)? {
            let user = find(&token)?;
            // Only now: a token that did not count is a subprotocol like any other.
            if let Ok(others) = HeaderValue::from_str(&others) {
                request.headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
            }
            return Ok(user);
        }
        match by_header {
            Some(outcome) => outcome,
            // A client with a wrong certificate does not mean to be anonymous.
            None if self.refuses_anonymous || is_refused => Err(ApiError::unauthorized()),
            None => Ok(User::new(ANONYMOUS, &[UNAUTHENTICATED])),
        }
    }
}

/// Returns the bearer token of a request. An unreadable token is a wrong token, and not an absent
/// token: without a token the client would be anonymous.
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
        request: &mut Parts,
        connection: &ConnectionIdentity,
    ) -> Result<User, ApiError> {
        let user = self.caller(request, connection)?;
        // After authentication: the right to impersonate is that of the real user.
        match self.core.upgrade() {
            Some(core) => impersonate::apply(&core, &self.modes, user, request),
            None => Ok(user),
        }
    }

    fn caller(
        &self,
        request: &mut Parts,
        connection: &ConnectionIdentity,
    ) -> Result<User, ApiError> {
        match &connection.user {
            // First: a client with a certificate may send a token as well, which then does not
            // count.
            Some(user) => Ok(user.clone().authenticated()),
            None => self.by_token(request, connection.is_refused),
        }
    }

    fn token(&self, token: &str, audiences: &[String]) -> Result<TokenUser, String> {
        let invalid = || INVALID_TOKEN.to_owned();
        let core = self.core.upgrade().ok_or_else(invalid)?;
        if token.len() > LONGEST {
            return Err(invalid());
        }
        // Tokens of the file are meant for the server only.
        if let Some(user) = self.tokens.find(token) {
            let own = core.issuer.audiences();
            let audiences: Vec<String> =
                audiences.iter().filter(|wanted| own.contains(wanted)).cloned().collect();
            let known = !audiences.is_empty();
            let user = user.authenticated();
            return known.then_some(TokenUser { user, audiences }).ok_or_else(invalid);
        }
        accounts::identify(&core, token, audiences)?.ok_or_else(invalid)
    }
}
