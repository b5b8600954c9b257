//! Bearer tokens among subprotocols: browsers cannot set headers of a WebSocket.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::request::Parts;

use super::handshake::is_wanted;
use crate::status::ApiError;

/// Beginning of a subprotocol that is a token.
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Returns the token among the subprotocols of a request, and the others, joined; `None` without a
/// token.
pub(in super::super) fn token(request: &Parts) -> Result<Option<(String, String)>, ApiError> {
    if !is_wanted(request) {
        return Ok(None);
    }
    let mut token = None;
    let mut others = Vec::new();
    let headers = request.headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    for header in headers.filter_map(|value| value.to_str().ok()) {
        for protocol in header.split(',').map(str::trim) {
            let Some(encoded) = protocol.strip_prefix(PREFIX) else {
                others.push(protocol);
                continue;
            };
            let decoded = URL_SAFE_NO_PAD.decode(encoded).ok();
            let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
            // A second token, or an unreadable token, is a wrong token.
            let decoded = decoded.filter(|_| token.is_none()).ok_or_else(ApiError::unauthorized)?;
            token = Some(decoded);
        }
    }
    let Some(token) = token.filter(|token| !token.is_empty()) else { return Ok(None) };
    // The answer names a subprotocol, and must not repeat the token.
    if others.is_empty() {
        return Err(ApiError::unauthorized());
    }
    Ok(Some((token, others.join(","))))
}
