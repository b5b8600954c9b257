//! The handshake, in the form of upstream's library.

use http::header::{
    CONNECTION, HeaderName, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, Method, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::super::body::Payload;
use super::super::exchange::Reply;
use super::SocketSession;

/// Version of the protocol.
const VERSION: &str = "13";

/// Whether a request asks for a WebSocket.
pub(in super::super) fn is_wanted(request: &Parts) -> bool {
    is_upgrade(request) && first(&request.headers, &UPGRADE).eq_ignore_ascii_case("websocket")
}

/// Whether a request asks for another protocol on the connection.
pub(super) fn is_upgrade(request: &Parts) -> bool {
    // HTTP/2 has other means, which upstream does not offer.
    let one = request.version == Version::HTTP_11 || request.version == Version::HTTP_10;
    one && request.headers.get_all(CONNECTION).iter().any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.to_ascii_lowercase().contains("upgrade")
    })
}

/// Returns the first value of a header; empty when absent or not ASCII.
pub(super) fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the subprotocols that a client offers, in its order.
pub(super) fn offered(request: &Parts) -> Vec<&str> {
    // Among several headers upstream reads the first.
    let header = first(&request.headers, &SEC_WEBSOCKET_PROTOCOL).trim();
    if header.is_empty() {
        return Vec::new();
    }
    header.split(',').map(str::trim).collect()
}

/// Answers the handshake of a watch, which needs an origin, and takes any single subprotocol.
pub(super) fn answer_watch(request: &Parts, session: SocketSession) -> Reply {
    if let Some(refused) = fault(request) {
        return refused;
    }
    if !is_uri(first(&request.headers, &ORIGIN)) {
        return refusal(403, "");
    }
    match offered(request).as_slice() {
        [] => accept(request, "", session),
        [one] => accept(request, one, session),
        _ => refusal(400, ""),
    }
}

/// Answers the handshake of a session with channels: of the subprotocols that the client offers,
/// the first known subprotocol is taken. No origin is needed.
pub(super) fn answer_channels(
    request: &Parts,
    known: &[&str],
    session: impl FnOnce(&str) -> SocketSession,
) -> Reply {
    if let Some(refused) = fault(request) {
        return refused;
    }
    let mut offered = offered(request);
    if offered.is_empty() {
        offered.push("");
    }
    match offered.into_iter().find(|one| known.contains(one)) {
        Some(protocol) => accept(request, protocol, session(protocol)),
        None => refusal(403, ""),
    }
}

/// Returns the refusal of a request that is no handshake.
fn fault(request: &Parts) -> Option<Reply> {
    if request.method != Method::GET {
        return Some(refusal(405, "bad method"));
    }
    if first(&request.headers, &SEC_WEBSOCKET_KEY).is_empty() {
        return Some(refusal(400, "mismatch challenge/response"));
    }
    if first(&request.headers, &SEC_WEBSOCKET_VERSION) != VERSION {
        let mut refused = refusal(400, "missing or bad WebSocket Version");
        refused.headers.push(("sec-websocket-version", VERSION.to_owned()));
        return Some(refused);
    }
    None
}

/// Returns a refusal, behind which the connection ends.
fn refusal(code: u16, text: &'static str) -> Reply {
    let mut reply = Reply::bytes(code, "", text);
    reply.headers.push(("connection", "close".to_owned()));
    reply
}

/// Returns the answer that turns the connection into a WebSocket; `protocol` is empty for none.
fn accept(request: &Parts, protocol: &str, session: SocketSession) -> Reply {
    let key = first(&request.headers, &SEC_WEBSOCKET_KEY);
    let mut headers = vec![
        ("upgrade", "websocket".to_owned()),
        ("connection", "Upgrade".to_owned()),
        ("sec-websocket-accept", derive_accept_key(key.as_bytes())),
    ];
    if !protocol.is_empty() {
        headers.push(("sec-websocket-protocol", protocol.to_owned()));
    }
    Reply {
        code: 101,
        media: String::new(),
        headers,
        warnings: Vec::new(),
        payload: Payload::Session(session),
    }
}

/// Whether the text of an origin is a URI with a scheme, or an absolute path.
fn is_uri(text: &str) -> bool {
    if text == "*" || text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme && !rest.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_uri() {
        for (text, wanted) in [
            ("http://localhost", true),
            ("https://127.0.0.1:6443", true),
            ("/a", true),
            ("", false),
            ("null", false),
            ("%%%", false),
            ("1x://a", false),
        ] {
            assert_eq!(is_uri(text), wanted, "{text}");
        }
    }
}
