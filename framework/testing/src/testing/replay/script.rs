//! The other side of a replayed operator: its exchanges are answered from the recording, its
//! reconciles are held until they are due in the recording, and its requests are compared.

// DESIGN.md, 279: A replay decides when each reconcile begins

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use windlass_client::client::{
    BrokenExchange, ExchangeHook, HttpResponse, RequestOrigin, ResponseFuture, SentRequest,
};
use windlass_core::error::BoxError;
use windlass_core::resource::ObjectKey;
use windlass_runtime::controller::{
    AdmissionFuture, ObservedReconcile, ReconcileEnd, ReconcileObserver, current_reconcile,
};
use windlass_runtime::manager::outcome_text;

use super::body::WatchBody;
use super::caches::ReplayedCache;
use super::compare;
use super::format::{Lines, RecordedAnswer, RecordedEntry, RecordedRequest};

/// Controller and key of a reconcile.
pub(super) type ReconcileId = (String, String);

/// The other side of the operator.
pub(super) struct Script {
    /// For futures that outlive a call.
    this: Weak<Self>,
    tolerance: Duration,
    pub(super) state: Mutex<ReplayState>,
    /// Notified at each change of the state.
    pub(super) changed: Notify,
}

/// State of a replay.
#[derive(Debug, Default)]
pub(super) struct ReplayState {
    pub(super) caches: Vec<ReplayedCache>,
    documents: BTreeMap<String, (u16, Value)>,
    /// Recorded requests by their numbers, which are in the order of the requests.
    requests: BTreeMap<u64, ScriptedRequest>,
    /// Recorded reconciles whose begin is in the recording, by their numbers.
    pub(super) reconciles: HashMap<u64, ScriptedReconcile>,
    /// Recorded reconciles by the numbers that they have in the replay.
    numbers: HashMap<u64, u64>,
    held: HashMap<ReconcileId, oneshot::Sender<()>>,
    admitted: HashMap<ReconcileId, u64>,
    /// Requests that are never answered, as in the recording.
    parked: Vec<oneshot::Sender<RecordedAnswer>>,
    /// The first difference.
    pub(super) difference: Option<String>,
    /// Requests that were equal.
    pub(super) equal: usize,
}

/// A recorded request, and its state in the replay.
#[derive(Debug)]
struct ScriptedRequest {
    recorded: RecordedRequest,
    answer: Option<RecordedAnswer>,
    is_sent: bool,
    waiting: Option<oneshot::Sender<RecordedAnswer>>,
}

/// A recorded reconcile, and its state in the replay.
#[derive(Debug)]
pub(super) struct ScriptedReconcile {
    pub(super) reconcile_id: ReconcileId,
    /// Text for reports.
    pub(super) text: String,
    /// Whether the recording has the end, and so all requests.
    has_end: bool,
    pub(super) has_begun: bool,
    /// End in the replay.
    pub(super) ended: Option<String>,
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

impl Script {
    pub(super) fn new(lines: &Lines, tolerance: Duration) -> Arc<Self> {
        let state = Mutex::new(ReplayState::of(lines));
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            tolerance,
            state,
            changed: Notify::new(),
        })
    }

    /// Lets a reconcile begin that is held; false if none is.
    pub(super) fn admit(&self, number: u64, reconcile_id: &ReconcileId) -> bool {
        let mut state = self.state.lock();
        let Some(held) = state.held.remove(reconcile_id) else { return false };
        state.admitted.insert(reconcile_id.clone(), number);
        // Gone only if the operator has ended.
        held.send(()).is_ok()
    }

    /// Whether a request has been sent in the replay.
    pub(super) fn is_sent(&self, number: u64) -> bool {
        self.state.lock().requests.get(&number).is_none_or(|request| request.is_sent)
    }

    /// Returns the reconcile of a recorded request, if the recording has its begin.
    pub(super) fn reconcile_of(&self, number: u64) -> Option<u64> {
        let state = self.state.lock();
        let reconcile = state.requests.get(&number)?.recorded.reconcile?;
        state.reconciles.contains_key(&reconcile).then_some(reconcile)
    }

    /// Passes the recorded answer to a request that waits for it.
    pub(super) fn deliver(&self, number: u64) {
        let mut state = self.state.lock();
        let Some(request) = state.requests.get_mut(&number) else { return };
        if let (Some(waiting), Some(answer)) = (request.waiting.take(), &request.answer) {
            if matches!(answer, RecordedAnswer::Lost { how, .. } if how == "dropped") {
                // The recorded operator stopped waiting, and so does this one.
                state.parked.push(waiting);
            } else {
                let _ = waiting.send(answer.clone());
            }
        }
    }

    /// Notes the first difference.
    pub(super) fn differ(&self, reconcile: Option<u64>, text: &str) {
        let mut state = self.state.lock();
        let of = reconcile.and_then(|number| state.reconciles.get(&number));
        let of = of.map(|reconcile| format!("{}\n", reconcile.text)).unwrap_or_default();
        state.difference.get_or_insert(format!("{of}{text}"));
        drop(state);
        self.changed.notify_waiters();
    }

    /// Returns the text of a recorded request.
    pub(super) fn request_text(&self, number: u64) -> String {
        let state = self.state.lock();
        state.requests.get(&number).map(|it| text_of(&it.recorded)).unwrap_or_default()
    }

    /// Compares a request of a reconcile, and returns the wait for its answer.
    fn compared(&self, reconcile: u64, request: &SentRequest) -> Option<Waiting> {
        let body = body_of(&request.body);
        let mut state = self.state.lock();
        let has_end = state.reconciles.get(&reconcile).is_some_and(|it| it.has_end);
        let of_it = |it: &&mut ScriptedRequest| {
            it.recorded.reconcile == Some(reconcile)
                && !it.is_sent
                && it.recorded.method == request.method
                && it.recorded.path == request.path
        };
        let mut candidates: Vec<_> = state.requests.values_mut().filter(of_it).collect();
        let differences =
            |it: &ScriptedRequest| differences(&it.recorded, request, &body, self.tolerance);
        let equal = candidates.iter().position(|it| differences(it).is_empty());
        let Some(at) = equal else {
            let text = match candidates.first() {
                Some(first) => {
                    let lines = differences(first).join("\n    ");
                    format!("  {} differs:\n    {lines}", text_of(&first.recorded))
                }
                // More requests may have followed in a reconcile that the recording has in part.
                None if !has_end => return None,
                None => format!(
                    "  {} {} is sent, which the recorded reconcile did not send",
                    request.method, request.path
                ),
            };
            drop(state);
            self.differ(Some(reconcile), &text);
            return None;
        };
        let (sender, receiver) = oneshot::channel();
        let found = candidates.swap_remove(at);
        (found.is_sent, found.waiting) = (true, Some(sender));
        state.equal += 1;
        drop(state);
        self.changed.notify_waiters();
        Some(receiver)
    }

    /// Returns the answer to a request outside of the recorded reconciles, at once: that of the
    /// next recorded one of this kind.
    fn outside(&self, request: &SentRequest) -> RecordedAnswer {
        let mut state = self.state.lock();
        let ReplayState { requests, reconciles, .. } = &mut *state;
        let mut fitting = requests.values_mut().filter(|it| {
            let is_of_one =
                it.recorded.reconcile.is_some_and(|number| reconciles.contains_key(&number));
            !is_of_one
                && !it.is_sent
                && it.recorded.method == request.method
                && it.recorded.path == request.path
                && it.recorded.query == request.query
        });
        let Some(found) = fitting.next() else { return failure(404, "it is not in the recording") };
        found.is_sent = true;
        found.answer.clone().unwrap_or_else(|| failure(503, "it has no answer in the recording"))
    }

    /// Answers a list or a watch of a cache.
    fn cache(&self, request: &SentRequest) -> ResponseFuture {
        let selectors = selectors(&request.query);
        let is_same = |cache: &ReplayedCache| {
            cache.path == request.path
                && cache.selectors == selectors
                && cache.is_metadata == request.is_metadata
        };
        let Some(at) = self.state.lock().caches.iter().position(is_same) else {
            let text = format!(
                "the operator caches {}, of which the recording has no objects",
                text_with(&request.path, &selectors)
            );
            self.differ(None, &text);
            return Box::pin(std::future::pending());
        };
        let is_watch = ["watch=true", "watch=1"].iter().any(|it| has(&request.query, it));
        let is_initial = has(&request.query, "sendInitialEvents=true");
        let from = parameter(&request.query, "resourceVersion=").unwrap_or_default();
        let this = self.this.clone();
        Box::pin(async move {
            loop {
                let Some(this) = this.upgrade() else { return std::future::pending().await };
                let changed = this.changed.notified();
                let answer = {
                    let mut state = this.state.lock();
                    let cache = state.caches.get_mut(at);
                    cache.and_then(|cache| match cache.list() {
                        Some((200, _)) if is_watch => {
                            Some(watching(WatchBody(cache.watch(&from, is_initial))))
                        }
                        listed => listed.map(|(code, body)| json_answer(code, &body)),
                    })
                };
                if let Some(answer) = answer {
                    return Ok(answer);
                }
                // The first recorded list is still to come.
                changed.await;
            }
        })
    }
}

/// A wait for an answer.
type Waiting = oneshot::Receiver<RecordedAnswer>;

impl ReplayState {
    fn of(lines: &Lines) -> Self {
        let mut state = Self {
            caches: lines.caches.iter().map(ReplayedCache::new).collect(),
            ..Self::default()
        };
        for (path, code, body) in &lines.documents {
            state.documents.insert(path.clone(), (*code, body.clone()));
        }
        for (at, entry) in &lines.entries {
            match entry {
                RecordedEntry::Request(recorded) => {
                    let recorded = recorded.clone();
                    let number = recorded.number;
                    let request =
                        ScriptedRequest { recorded, answer: None, is_sent: false, waiting: None };
                    state.requests.insert(number, request);
                }
                RecordedEntry::Answer { number, answer } => {
                    if let Some(request) = state.requests.get_mut(number) {
                        request.answer = Some(answer.clone());
                    }
                }
                RecordedEntry::Start { number, controller, key, reasons } => {
                    let text = format!(
                        "the reconcile of {key} by {controller:?} at {at}, because of: {reasons}"
                    );
                    let reconcile_id = (controller.clone(), key.clone());
                    let (has_end, has_begun, ended) = (false, false, None);
                    let reconcile =
                        ScriptedReconcile { reconcile_id, text, has_end, has_begun, ended };
                    state.reconciles.insert(*number, reconcile);
                }
                RecordedEntry::End { number, .. } => {
                    if let Some(reconcile) = state.reconciles.get_mut(number) {
                        reconcile.has_end = true;
                    }
                }
                RecordedEntry::List { .. } | RecordedEntry::Event { .. } => {}
            }
        }
        state
    }
}

impl ExchangeHook for Script {
    fn answer(&self, request: &SentRequest) -> Option<ResponseFuture> {
        if request.origin == RequestOrigin::Routine {
            // Events: no oracle judges them, and none is kept.
            let body = body_of(&request.body);
            return Some(Box::pin(std::future::ready(Ok(json_answer(201, &body)))));
        }
        if let Some((code, body)) = self.state.lock().documents.get(&request.path) {
            let answer = json_answer(*code, body);
            return Some(Box::pin(std::future::ready(Ok(answer))));
        }
        if request.origin == RequestOrigin::Cache {
            return Some(self.cache(request));
        }
        let running = current_reconcile();
        let reconcile = running.and_then(|it| self.state.lock().numbers.get(&it).copied());
        let Some(reconcile) = reconcile else {
            let answer = answer_of(&self.outside(request));
            return Some(Box::pin(std::future::ready(answer)));
        };
        let waiting = self.compared(reconcile, request);
        Some(Box::pin(async move {
            match waiting {
                Some(waiting) => match waiting.await {
                    Ok(answer) => answer_of(&answer),
                    // The replay has ended.
                    Err(_) => std::future::pending().await,
                },
                // A difference ends the replay.
                None => std::future::pending().await,
            }
        }))
    }
}

impl ReconcileObserver for Script {
    fn admitted(&self, controller: &str, key: &ObjectKey) -> Option<AdmissionFuture> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().held.insert((controller.to_owned(), key.to_string()), sender);
        self.changed.notify_waiters();
        Some(Box::pin(async move {
            if receiver.await.is_err() {
                std::future::pending::<()>().await;
            }
        }))
    }

    fn began(&self, reconcile: &ObservedReconcile) {
        let reconcile_id = (reconcile.controller.to_string(), reconcile.key.to_string());
        let mut state = self.state.lock();
        if let Some(number) = state.admitted.remove(&reconcile_id) {
            state.numbers.insert(reconcile.number, number);
            if let Some(recorded) = state.reconciles.get_mut(&number) {
                recorded.has_begun = true;
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn ended(&self, reconcile: &ObservedReconcile, end: ReconcileEnd) {
        let mut state = self.state.lock();
        let number = state.numbers.get(&reconcile.number).copied();
        if let Some(recorded) = number.and_then(|number| state.reconciles.get_mut(&number)) {
            recorded.ended = Some(outcome_text(&end));
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

/// Returns the differences of a request from a recorded one of the same method and path.
fn differences(
    recorded: &RecordedRequest,
    request: &SentRequest,
    body: &Value,
    tolerance: Duration,
) -> Vec<String> {
    let mut found = Vec::new();
    let content_type = request.content_type.as_deref().unwrap_or_default();
    for (name, before, after) in [
        ("query", recorded.query.as_str(), request.query.as_str()),
        ("content type", recorded.content_type.as_deref().unwrap_or_default(), content_type),
    ] {
        if before != after {
            found.push(format!("{name}: {before:?} in the recording, {after:?} now"));
        }
    }
    found.extend(compare::differences(&recorded.body, body, tolerance));
    found
}

/// Returns a body as recordings have it.
fn body_of(body: &[u8]) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into())
}

fn text_of(request: &RecordedRequest) -> String {
    format!("{} {}", request.method, text_with(&request.path, &request.query))
}

fn text_with(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

fn has(query: &str, wanted: &str) -> bool {
    query.split('&').any(|pair| pair == wanted)
}

fn parameter(query: &str, name: &str) -> Option<String> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)).map(str::to_owned)
}

/// Returns the parameters of a query that select objects, as recordings have them.
fn selectors(query: &str) -> String {
    let is_one =
        |pair: &&str| pair.starts_with("labelSelector=") || pair.starts_with("fieldSelector=");
    query.split('&').filter(is_one).collect::<Vec<_>>().join("&")
}

fn failure(code: u16, why: &str) -> RecordedAnswer {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": why, "code": code });
    RecordedAnswer::Answered { code, retry_after: None, body }
}

/// Returns an answer of the transport.
fn answer_of(answer: &RecordedAnswer) -> Result<HttpResponse, BoxError> {
    match answer {
        RecordedAnswer::Answered { code, retry_after, body } => {
            let mut response = json_answer(*code, body);
            let retry_after = retry_after.as_deref().map(HeaderValue::from_str);
            if let Some(Ok(retry_after)) = retry_after {
                response.headers_mut().insert(RETRY_AFTER, retry_after);
            }
            Ok(response)
        }
        RecordedAnswer::Lost { how, error } => {
            let broken = match how.as_str() {
                "notSent" => BrokenExchange::NotSent,
                "timedOut" => BrokenExchange::TimedOut,
                _ => BrokenExchange::Lost,
            };
            Err(broken.error(error))
        }
    }
}

/// Returns an answer with a whole body.
fn json_answer(code: u16, body: &Value) -> HttpResponse {
    let bytes = match body {
        Value::Null => Bytes::new(),
        Value::String(text) => text.clone().into(),
        body => body.to_string().into(),
    };
    let mut response =
        Response::new(Full::new(bytes).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns the answer to a watch.
fn watching(body: WatchBody) -> HttpResponse {
    let mut response = Response::new(body.boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
