//! Routes of the admin socket.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::forms::FaultForm;
use super::state;
use crate::server::ApiServer;

/// Longest body, in bytes.
const LIMIT: usize = 1 << 20;
/// Longest snapshot, in bytes.
const SNAPSHOT: usize = 512 << 20;
/// Longest time for a body.
const BODY: Duration = Duration::from_secs(300);

/// Code and text of a failure.
type Refusal = (u16, String);

/// Request about open watches.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchForm {
    resource: String,
    #[serde(default)]
    code: u16,
    milliseconds: Option<u64>,
}

/// Answers a request.
pub(super) async fn answer(
    server: &ApiServer,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let (code, value) = match run(server, request).await {
        Ok(answer) => answer,
        Err((code, why)) => (code, json!({"error": why})),
    };
    let mut response = Response::new(Full::new(Bytes::from(value.to_string())));
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let media = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, media);
    response
}

/// Executes a request.
async fn run(server: &ApiServer, request: Request<Incoming>) -> Result<(u16, Value), Refusal> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().trim_matches('/').to_owned();
    let path: Vec<&str> = path.split('/').collect();
    let method = parts.method;
    match (method.as_str(), path.as_slice()) {
        ("GET", ["faults"]) => Ok((200, server.core.faults.describe())),
        ("POST", ["faults"]) => {
            let fault = parse::<FaultForm>(&read(body, LIMIT).await?)?.fault();
            let handle = server.core.faults.add(fault.map_err(|why| (400, why))?);
            Ok((201, json!({"id": handle.id()})))
        }
        ("DELETE", ["faults"]) => {
            server.core.faults.clear();
            Ok(done())
        }
        ("DELETE", ["faults", id]) => {
            let known = id.parse().is_ok_and(|id| server.core.faults.remove(id));
            if known { Ok(done()) } else { Err((404, format!("there is no fault {id}"))) }
        }
        ("POST", ["watches", action]) => {
            let form = parse::<WatchForm>(&read(body, LIMIT).await?)?;
            watches(server, action, &form)
        }
        ("POST", ["compact"]) => {
            server.compact();
            Ok(done())
        }
        ("POST", ["restart"]) => {
            server.restart().await;
            Ok(done())
        }
        ("GET", ["snapshot"]) => state::download(server).await,
        ("PUT", ["snapshot"]) => state::restore(server, read(body, SNAPSHOT).await?).await,
        ("GET", ["audit"]) => Ok((
            200,
            json!({
                "entries": server.audit(), "dropped": server.dropped_audit(), "lost": server.lost_audit(),
            }),
        )),
        ("GET", ["counters"]) => Ok((200, state::counters(server).await)),
        other => Err(unknown(&method, parts.uri.path(), other.1)),
    }
}

/// Returns the answer to an order that has been executed.
fn done() -> (u16, Value) {
    (200, json!({}))
}

/// Returns the methods of a route; none if there is no such route.
fn methods(path: &[&str]) -> &'static [&'static str] {
    match path {
        ["faults"] => &["GET", "POST", "DELETE"],
        ["faults", _] => &["DELETE"],
        ["watches", _] | ["compact"] | ["restart"] => &["POST"],
        ["snapshot"] => &["GET", "PUT"],
        ["audit"] | ["counters"] => &["GET"],
        _ => &[],
    }
}

/// Returns the refusal of a method, or of a route that does not exist.
fn unknown(method: &Method, uri: &str, path: &[&str]) -> Refusal {
    let known = methods(path);
    if !known.is_empty() {
        return (405, format!("{method} is not a method of {uri}; use {}", known.join(" or ")));
    }
    let text = format!(
        "there is no {method} {uri}; the routes are /faults, /faults/ID, /watches/ACTION, /compact, /restart, /snapshot, /audit, /counters"
    );
    (404, text)
}

/// Reads a body.
async fn read(body: Incoming, limit: usize) -> Result<Bytes, Refusal> {
    let read = tokio::time::timeout(BODY, Limited::new(body, limit).collect());
    match read.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) => Err((400, format!("cannot read the body: {error}"))),
        Err(_) => Err((408, format!("the body did not arrive within {} s", BODY.as_secs()))),
    }
}

/// Reads a body as JSON.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| (400, format!("cannot read the body: {error}")))
}

/// Gives an order to open watches.
fn watches(server: &ApiServer, action: &str, form: &WatchForm) -> Result<(u16, Value), Refusal> {
    let (faults, resource) = (&server.core.faults, form.resource.as_str());
    match action {
        "close" => faults.close_watches(resource),
        "fail" if form.code < 400 => {
            return Err((400, "`code` must be 400 or more".to_owned()));
        }
        "fail" => faults.fail_watches(resource, form.code),
        "pause" => faults.pause_watches(resource),
        "resume" => faults.resume_watches(resource),
        "lag" => {
            let Some(time) = form.milliseconds else {
                return Err((400, "`lag` needs `milliseconds`; 0 ends the delay".to_owned()));
            };
            faults.lag_watches(resource, Duration::from_millis(time));
        }
        other => {
            let text = format!("{other:?} is not one of close, fail, pause, resume, lag");
            return Err((404, text));
        }
    }
    Ok(done())
}
