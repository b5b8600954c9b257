//! Stand-in for `socket` without the feature `websocket`: no connection becomes a WebSocket.

// DESIGN.md, 228: The API server has its file, its WebSockets and its program by features

use http::request::Parts;
use hyper::upgrade::OnUpgrade;

use crate::http::connection::ActiveRequest;
use crate::http::exchange::{DecodedRequest, Reply};
use crate::status::ApiError;
use crate::verbs::subresources::connect::PodSession;

/// The content of a WebSocket: there is none.
pub(crate) enum SocketSession {}

/// A session and the connection that will carry it.
pub(super) struct Upgrading {
    pub(super) session: SocketSession,
    pub(super) upgrade: OnUpgrade,
    pub(super) running: Option<ActiveRequest>,
}

impl Upgrading {
    pub(super) async fn run(self) {
        drop((self.upgrade, self.running));
        match self.session {}
    }
}

/// Returns no token, because a token could stand among the subprotocols of a WebSocket only.
pub(super) fn token(_request: &Parts) -> Result<Option<(String, String)>, ApiError> {
    Ok(None)
}

/// Whether a request may become a WebSocket.
pub(super) fn is_wanted(_request: &Parts) -> bool {
    false
}

/// Leaves an answer unchanged: a server may ignore the wish for another protocol, and a watch goes
/// on over HTTP.
pub(super) fn upgrade(_asked: &DecodedRequest, reply: Reply) -> Reply {
    reply
}

/// Refuses a session with a Pod.
pub(super) fn connect(_asked: &DecodedRequest, session: PodSession) -> Result<Reply, ApiError> {
    Err(refusal(session))
}

/// Returns the answer to a session: that of an unreachable kubelet is the same over HTTP.
fn refusal(session: PodSession) -> ApiError {
    match session {
        PodSession::Unreachable { error, .. } => error,
        _ => ApiError::custom(501, "NotImplemented", MISSING),
    }
}

/// Text of the refusal.
const MISSING: &str = "this server was built without WebSocket: add the feature `ws` of windlass (`websocket` of \
                       windlass-apiserver)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_without_websockets_is_answered_501_with_the_feature_to_add() {
        let answer = refusal(PodSession::Ports(vec![80]));
        assert_eq!((answer.code(), answer.reason()), (501, "NotImplemented"));
        let text = answer.message();
        assert!(text.contains("`ws` of windlass") && text.contains("`websocket`"), "{text}");
    }

    #[test]
    fn an_unreachable_kubelet_is_answered_as_with_websockets() {
        let error = ApiError::no_resource();
        let answer = refusal(PodSession::Unreachable { error, inside: None });
        assert_eq!(answer.code(), 404);
    }

    #[test]
    fn no_request_becomes_a_websocket_so_watches_go_on_over_http() {
        let asked = http::Request::builder()
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .body(())
            .expect("a request");
        let (parts, ()) = asked.into_parts();
        assert!(!is_wanted(&parts));
        assert!(matches!(token(&parts), Ok(None)));
    }
}
