//! Stand-in for `socket` without the feature `websocket`: no connection becomes a WebSocket.

// DESIGN.md, 228: The API server has its file, its WebSockets and its program by features

use http::request::Parts;
use hyper::upgrade::OnUpgrade;

use super::connection::Running;
use super::exchange::{DecodedRequest, Reply};
use crate::status::ApiError;
use crate::verbs::subresources::connect::PodSession;

/// The content of a WebSocket: there is none.
pub(crate) enum Session {}

/// A session and the connection that will carry it.
pub(super) struct Upgrading {
    pub(super) session: Session,
    pub(super) upgrade: OnUpgrade,
    pub(super) running: Option<Running>,
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
    match session {
        PodSession::Unreachable { error, .. } => Err(error),
        _ => Err(ApiError::custom(501, "NotImplemented", MISSING)),
    }
}

/// Text of the refusal.
const MISSING: &str = "this server was built without WebSocket: add the feature `ws` of windlass (`websocket` of \
                       windlass-apiserver)";
