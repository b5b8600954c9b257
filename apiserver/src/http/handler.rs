//! A request from headers to answer: authentication, authorization, faults, execution.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::body::Payload;
use super::codec;
use super::connection::ActiveRequest;
use super::dispatch;
use super::exchange::{DecodedRequest, Reply};
use super::route;
use super::socket::{self, SocketSession};
use super::verb::Verb;
use super::warnings;
use crate::audit::Detail;
use crate::auth::{self, ANONYMOUS, ConnectionIdentity, User};
use crate::core::ServerCore;
use crate::faults::{FaultAction, LONGEST, MatchedRequest};
use crate::metrics::Labels;
use crate::requests;
use crate::status::ApiError;
use crate::verbs::options::Query;
use crate::verbs::watch::failure;

/// Longest body of a request, in bytes.
const LIMIT: usize = 3 * 1024 * 1024;
/// Longest text of a client in an entry of the logs, in characters; names have 253 at most.
const LONGEST_TEXT: usize = 512;
/// Longest time for a body; upstream's for a request.
const BODY: Duration = Duration::from_secs(60);

/// Answers a request; with a session if the connection becomes a WebSocket. A request that hangs,
/// or whose connection is cut, never returns.
pub(crate) async fn handle(
    core: Arc<ServerCore>,
    identity: &ConnectionIdentity,
    cut: &CancellationToken,
    running: Option<&ActiveRequest>,
    request: Request<Incoming>,
) -> (Response<Payload>, Option<SocketSession>) {
    let (mut parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let route = route::route(&parts.method, parts.uri.path(), &query);
    let agent = text(&parts.headers, &USER_AGENT).to_owned();
    // Before authentication, which removes a token from the subprotocols.
    let is_impersonated = core.audit.is_on() && parts.headers.contains_key("impersonate-user");
    let caller =
        is_impersonated.then(|| core.authenticator().caller(&mut parts.clone(), identity).ok());
    let found = core.authenticator().authenticate(&mut parts, identity);
    if let Some(running) = running {
        running.identify(found.as_ref().is_ok_and(|user| user.name != ANONYMOUS));
    }
    let user = match found {
        Ok(user) => user,
        // Neither struck nor recorded: faults and the log know only requests of known users.
        Err(error) => {
            let reply = Reply::failure(&error, codec::preferred(&parts.headers));
            if core.audit.is_on() {
                let user = caller.flatten().unwrap_or_default();
                let asked = decoded(&core, parts, route, query, user, agent);
                let request = described(&core, &asked, reply.code);
                core.audit.record(&request, &detail(&core, &asked));
            }
            return (respond(reply), None);
        }
    };
    let mut asked = decoded(&core, parts, route, query, user, agent);
    asked.impersonator = caller.flatten().map(|user| user.name).unwrap_or_default();
    // Struck once per request, because counting faults must not count it twice.
    asked.actions = core.faults.strike(&subject(&asked));
    let labels = labels(&core, &asked);
    let running = (asked.route.verb != Verb::Watch).then(|| core.metrics.begin(&labels));
    let mut unanswered = Unanswered { core: &core, asked: &asked, is_answered: false };
    let mut reply = match before(&core, &asked, cut).await {
        Some(reply) => reply,
        None => {
            let mut reply = unless_panicking(&core, answer(&core, &asked, body)).await;
            codec::compress(&asked.parts.headers, asked.parts.uri.path(), &mut reply);
            reply
        }
    };
    // An answer shows or promises a state: not before that state outlives the process.
    core.store.durable().await;
    after(&core, &asked, &mut reply, cut).await;
    // Last: an answer that a fault put in the place of this reply is an answer over HTTP.
    let mut reply = socket::upgrade(&asked, reply);
    unanswered.is_answered = true;
    record(&core, &asked, reply.code);
    let duration = core.clock.elapsed().saturating_sub(asked.begun);
    drop(running);
    core.metrics.count(labels, reply.code, duration);
    let session = reply.payload.take_session();
    (respond(reply), session)
}

/// Records a request that ends without an answer, because the client has gone or the connection was
/// cut. Writes until then stay.
struct Unanswered<'a> {
    core: &'a ServerCore,
    asked: &'a DecodedRequest,
    is_answered: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.is_answered && self.core.audit.is_on() {
            let request = described(self.core, self.asked, 0);
            self.core.audit.record(&request, &detail(self.core, self.asked));
        }
    }
}

/// Returns a request before any work on it.
fn decoded(
    core: &ServerCore,
    parts: http::request::Parts,
    route: route::Route,
    query: Query,
    user: User,
    agent: String,
) -> DecodedRequest {
    DecodedRequest {
        parts,
        route,
        query,
        user,
        agent,
        actions: Vec::new(),
        begun: core.clock.elapsed(),
        impersonator: String::new(),
        written: Mutex::default(),
    }
}

/// Returns a reply, or the answer that upstream gives when the handler panics: a single bad request
/// must not close the connection of others.
async fn unless_panicking(core: &ServerCore, answer: impl Future<Output = Reply>) -> Reply {
    let mut answer = std::pin::pin!(answer);
    let guarded = std::future::poll_fn(|cx| {
        // Locks are not poisoned, and the future is not polled again.
        let polled = std::panic::AssertUnwindSafe(|| answer.as_mut().poll(cx));
        match std::panic::catch_unwind(polled) {
            Ok(Poll::Ready(reply)) => Poll::Ready(Some(reply)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(None),
        }
    });
    if let Some(reply) = guarded.await {
        return reply;
    }
    let count = core.requests.count_panic();
    tracing::error!(count, "a request's handler panicked; the client was answered 500");
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    Reply::bytes(500, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

/// Returns the text of a header; empty when absent or not ASCII.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns a request in the view of faults.
fn subject(asked: &DecodedRequest) -> MatchedRequest<'_> {
    let route = &asked.route;
    MatchedRequest {
        verb: route.verb.as_str(),
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: &route.namespace,
        name: route.subject(),
        path: asked.parts.uri.path(),
        agent: &asked.agent,
        user: &asked.user.name,
    }
}

/// Takes the actions that precede execution. A reply takes the place of the execution.
async fn before(
    core: &ServerCore,
    asked: &DecodedRequest,
    cut: &CancellationToken,
) -> Option<Reply> {
    for action in &asked.actions {
        match action {
            FaultAction::Delay(time) => tokio::time::sleep((*time).min(LONGEST)).await,
            FaultAction::Answer(code) => return Some(failure(*code).into()),
            FaultAction::RawBody(code, bytes) => {
                return Some(Reply::bytes(*code, "application/json", bytes.clone()));
            }
            FaultAction::Drop => {
                // Recorded here: the request never gets to the record of answers. The audit log
                // records the request when the connection ends.
                core.requests.record(described(core, asked, 0));
                vanish(cut).await;
            }
            FaultAction::Hang => {
                core.requests.record(described(core, asked, 0));
                std::future::pending::<()>().await;
            }
            _ => {}
        }
    }
    None
}

/// Takes the actions that follow execution.
async fn after(
    core: &ServerCore,
    asked: &DecodedRequest,
    reply: &mut Reply,
    cut: &CancellationToken,
) {
    for action in &asked.actions {
        match action {
            FaultAction::ExecuteThenAnswer(code) => *reply = failure(*code).into(),
            FaultAction::ExecuteThenDrop => {
                core.requests.record(described(core, asked, 0));
                vanish(cut).await;
            }
            FaultAction::ExecuteThenHang => {
                core.requests.record(described(core, asked, 0));
                std::future::pending::<()>().await;
            }
            FaultAction::ExecuteThenDelay(time) => tokio::time::sleep((*time).min(LONGEST)).await,
            FaultAction::RetryAfter(value) => {
                // Takes the place of the header that the answer may already have.
                reply.headers.retain(|(name, _)| *name != "retry-after");
                reply.headers.push(("retry-after", value.clone()));
            }
            _ => {}
        }
    }
}

/// Cuts the connection and waits for ever: the task of the request is dropped with the connection.
async fn vanish(cut: &CancellationToken) {
    cut.cancel();
    std::future::pending::<()>().await;
}

/// Authorizes and executes a request.
async fn answer(core: &Arc<ServerCore>, asked: &DecodedRequest, body: Incoming) -> Reply {
    let failure = |error: ApiError| Reply::failure(&error, codec::preferred(&asked.parts.headers));
    // Before the body is read: a client without the right cannot make the server hold a body.
    if let Err(error) = authorized(core, asked) {
        return failure(error).unsniffed();
    }
    let reply = match read(body).await {
        Ok(body) => dispatch::run(core, asked, &body).await,
        Err(error) => Err(error),
    };
    reply.unwrap_or_else(failure)
}

/// Checks that the user may make a request.
fn authorized(core: &ServerCore, asked: &DecodedRequest) -> Result<(), ApiError> {
    let wanted = asked.route.attributes();
    let allowed = core.authorizer().authorize(&asked.user, &wanted);
    allowed.map_err(|why| auth::refusal(&asked.user, &wanted, &why))
}

/// Reads the body of a request.
async fn read(body: Incoming) -> Result<Bytes, ApiError> {
    let read = tokio::time::timeout(BODY, Limited::new(body, LIMIT).collect());
    let Ok(read) = read.await else {
        return Err(ApiError::bad_request("the body did not arrive within 60 s"));
    };
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        // Cut while reading: a client cannot make the server hold more than the limit.
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::too_large(format!("Request entity too large: limit is {LIMIT}")))
        }
        Err(error) => Err(ApiError::bad_request(format!("the body ended early: {error}"))),
    }
}

/// Returns the labels of a request in metrics. Texts of clients are not among them.
pub(super) fn labels(core: &ServerCore, asked: &DecodedRequest) -> Labels {
    let route = &asked.route;
    let verb = match &route.verb {
        Verb::Create => "POST".to_owned(),
        Verb::Update => "PUT".to_owned(),
        // A method that HTTP does not know is a text of a client.
        Verb::Other(_) if asked.parts.method != http::Method::GET => "OTHER".to_owned(),
        other => other.as_str().to_uppercase(),
    };
    let is_dry = route.resourceful && asked.query.get("dryRun") == Some("All");
    let mut labels = Labels { verb, dry_run: if is_dry { "All" } else { "" }, ..Labels::default() };
    let table = core.registry.table();
    let kind = table.find(&route.group, &route.version, &route.resource);
    let Some(kind) = kind.filter(|_| route.resourceful) else { return labels };
    labels.scope = match (route.name.is_empty(), route.namespace.is_empty()) {
        (true, true) if route.verb != Verb::Create => "cluster",
        (true, false) if route.verb != Verb::Create => "namespace",
        _ => "resource",
    };
    let served = &kind.served;
    labels.group.clone_from(&served.group);
    labels.version.clone_from(&served.version);
    labels.resource.clone_from(&served.plural);
    if kind.subresource(&route.subresource).is_some() {
        labels.subresource.clone_from(&route.subresource);
    }
    labels
}

/// Adds a request to the log of requests, and to the audit log if enabled.
fn record(core: &ServerCore, asked: &DecodedRequest, code: u16) {
    let request = described(core, asked, code);
    if core.audit.is_on() {
        core.audit.record(&request, &detail(core, asked));
    }
    core.requests.record(request);
}

/// Returns a request with the code of the answer.
fn described(core: &ServerCore, asked: &DecodedRequest, code: u16) -> requests::Request {
    let route = &asked.route;
    let resource = if route.resourceful { route.resource.as_str() } else { asked.parts.uri.path() };
    requests::Request {
        verb: route.verb.to_string(),
        group: route.group.clone(),
        resource: cut_text(resource),
        subresource: cut_text(&route.subresource),
        namespace: cut_text(&route.namespace),
        name: cut_text(route.subject()),
        user: asked.user.name.clone(),
        agent: cut_text(&asked.agent),
        code,
        at: u64::try_from(core.clock.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// Returns the beginning of a text of a client: entries are kept, and a path may have 128 KiB.
fn cut_text(text: &str) -> String {
    if text.len() <= LONGEST_TEXT {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(LONGEST_TEXT).collect();
    cut.push('…');
    cut
}

/// Returns the parts of a request's entry that only the audit log has.
fn detail(core: &ServerCore, asked: &DecodedRequest) -> Detail {
    Detail {
        time: core.clock.rfc3339_micros(),
        version: asked.route.version.clone(),
        groups: asked.user.groups.clone(),
        impersonator: asked.impersonator.clone(),
        duration: core.clock.elapsed().saturating_sub(asked.begun),
        written: std::mem::take(&mut asked.written.lock()),
    }
}

/// Returns the HTTP response of a reply.
fn respond(reply: Reply) -> Response<Payload> {
    let mut response = Response::new(reply.payload);
    *response.status_mut() =
        StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    match HeaderValue::from_str(&reply.media) {
        Ok(media) if !media.is_empty() => drop(headers.insert(CONTENT_TYPE, media)),
        _ => {}
    }
    let keeps = reply.code == 101 || reply.headers.iter().any(|(name, _)| *name == "cache-control");
    if !keeps {
        // As in upstream's answers, unless this one may be cached.
        let value = HeaderValue::from_static("no-cache, private");
        headers.insert(http::header::CACHE_CONTROL, value);
    }
    for (name, value) in reply.headers {
        let name = if name == "retry-after" { RETRY_AFTER } else { HeaderName::from_static(name) };
        if let Ok(value) = HeaderValue::from_str(&value) {
            // Some answers vary with two headers of the request.
            let _ = headers.append(name, value);
        }
    }
    for value in warnings::headers(reply.warnings) {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.append(http::header::WARNING, value);
        }
    }
    response
}
