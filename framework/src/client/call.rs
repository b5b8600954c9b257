//! One call: its attempts, its deadline, and the error at its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::attempt::{Answer, Failure, Outgoing, check_path};
use super::auth::Credentials;
use super::pool::Pool;
use super::retry::{Budget, Decision, Facts, Outcome, Why, decide, leaves_doubt};
use super::tls::Tls;
use super::transport::{Attempt, Stack};
use super::{ByteStream, Client, Prepared, Response, Verb};
use crate::entropy::Entropy;
use crate::error::{BoxError, Error, ErrorKind};
use crate::metrics::names::{REST_REQUESTS, REST_RETRIES, REST_SECONDS};
use crate::seams::Seams;

/// The head of an answer to a read must come within this time, or another connection is tried.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for lists, which the server may have to collect first.
const LIST_HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// What all clones of a client share.
pub(crate) struct Shared {
    pub(super) stack: Stack,
    pub(super) pool: Arc<Pool>,
    pub(super) credentials: Arc<Credentials>,
    /// TLS with a client certificate that is read from files.
    pub(super) rotating: Option<Arc<Tls>>,
    /// Scheme, host, port and path prefix; no slash at the end.
    pub(super) base: String,
    pub(super) host: String,
    pub(super) namespace: String,
    pub(super) headers: HeaderMap,
    pub(super) user_agent: HeaderValue,
    pub(super) timeout: Duration,
    pub(super) jitter: Entropy,
    pub(super) budget: Mutex<Budget>,
    pub(super) warned: Mutex<BTreeSet<String>>,
    pub(super) discovery: Arc<crate::discovery::Cache>,
    pub(super) seams: Seams,
}

/// [`Client::send`].
pub(super) async fn send(client: &Client, request: Prepared) -> Result<Response, Error> {
    let span = span(&request);
    let call = async {
        let answer = Call::new(client, &request, true)?.run().await?;
        if request.verb.writes() {
            tracing::debug!(code = answer.status.as_u16(), "{}", request.what);
        }
        Ok(Response { status: answer.status, headers: answer.headers, body: answer.read })
    };
    Box::pin(call.instrument(span)).await
}

/// [`Client::stream`].
pub(super) async fn stream(client: &Client, request: Prepared) -> Result<ByteStream, Error> {
    let span = span(&request);
    let call = async {
        let answer = Call::new(client, &request, false)?.run().await?;
        let body = answer.rest.unwrap_or_else(|| {
            Full::new(answer.read).map_err(|never| match never {}).boxed_unsync()
        });
        Ok(ByteStream::new(body, request.what.clone()))
    };
    Box::pin(call.instrument(span)).await
}

fn span(request: &Prepared) -> Span {
    tracing::debug_span!(
        "request",
        verb = request.verb.as_str(),
        path = %request.path,
        attempts = tracing::field::Empty,
        code = tracing::field::Empty,
    )
}

struct Call<'a> {
    out: Outgoing<'a>,
    shared: &'a Shared,
    request: &'a Prepared,
    span: Span,
    deadline: Instant,
    attempt: u32,
    refreshed: bool,
    /// May an earlier attempt have been executed?
    doubt: bool,
}

impl<'a> Call<'a> {
    fn new(client: &'a Client, request: &'a Prepared, whole: bool) -> Result<Self, Error> {
        check_path(request)?;
        let shared = &*client.shared;
        let now = shared.seams.clock.now();
        shared.budget.lock().earn(now);
        let deadline = now + request.timeout.unwrap_or(shared.timeout);
        Ok(Self {
            out: Outgoing { client, request, whole },
            shared,
            request,
            span: Span::current(),
            deadline,
            attempt: 0,
            refreshed: false,
            doubt: false,
        })
    }

    async fn run(&mut self) -> Result<Answer, Error> {
        loop {
            self.attempt += 1;
            let header = self.credentials().await?;
            // Asked here to open no connection in vain, and again when there is one: what the gate
            // says now may not be true after a slow connect.
            let limit = self.admit()?;
            let failure = match self.attempt(limit, header.as_ref()).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(outcome) = failure.outcome() else { return Err(self.error(failure, None)) };
            let facts = Facts {
                verb: self.request.verb,
                repeatable: self.request.repeatable,
                outcome,
                attempt: self.attempt,
                refreshable: !self.refreshed && self.refreshable(),
                remaining: self.remaining(),
            };
            match decide(facts) {
                Decision::Fail(why) => return Err(self.error(failure, Some(why))),
                Decision::Refresh => {
                    self.refreshed = true;
                    // Out of time it stays refused for others to find out; this call ends below.
                    let refused = self.shared.credentials.refused(header.as_ref());
                    self.shared.seams.clock.within(self.remaining(), refused).await;
                    if let Some(tls) = &self.shared.rotating {
                        tls.forget();
                    }
                    if self.shared.rotating.is_some() || self.shared.credentials.is_plugin() {
                        // Open connections carry the old client certificate.
                        self.shared.pool.retire();
                    }
                }
                Decision::Wait { at_least, jitter } => {
                    let wait = at_least.max(self.shared.jitter.jitter(jitter));
                    self.wait(wait, failure, outcome).await?;
                }
            }
        }
    }

    /// Waits before another attempt, unless time or budget do not allow one.
    async fn wait(&mut self, wait: Duration, failure: Failure, was: Outcome) -> Result<(), Error> {
        if wait >= self.remaining() {
            return Err(self.error(failure, Some(Why::Final)).note("no time is left to try again"));
        }
        let clock = &self.shared.seams.clock;
        if !self.shared.budget.lock().spend(clock.now()) {
            let note = "not tried again, because too many requests of this client are failing";
            return Err(self.error(failure, Some(Why::Final)).note(note));
        }
        self.doubt |= self.request.verb.writes() && leaves_doubt(was);
        let labels = [failure.code(), self.method().to_owned(), self.shared.host.clone()];
        let labels = labels.each_ref().map(String::as_str);
        self.shared.seams.metrics.count(&REST_RETRIES, &labels, 1);
        tracing::debug!(attempt = self.attempt, ?wait, ?was, "trying again");
        clock.sleep(wait).await;
        Ok(())
    }

    /// Can what the server refused be replaced by asking its source again?
    fn refreshable(&self) -> bool {
        self.shared.credentials.refreshable() || self.shared.rotating.is_some()
    }

    fn method(&self) -> &str {
        self.request.method.as_str()
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(self.shared.seams.clock.now())
    }

    /// Asks the gate about a write; how long the attempt may take.
    fn admit(&self) -> Result<Option<Duration>, Error> {
        match &self.out.client.gate {
            Some(gate) if self.request.verb.writes() => {
                gate.admit().map_err(|refusal| self.in_doubt(refusal))
            }
            _ => Ok(None),
        }
    }

    async fn credentials(&self) -> Result<Option<HeaderValue>, Error> {
        let header = self.shared.credentials.header();
        match self.shared.seams.clock.within(self.remaining(), header).await {
            Some(Ok(header)) => Ok(header),
            Some(Err(error)) => {
                let text = format!("cannot {}: no credentials", self.request.what);
                Err(self.in_doubt(Error::new(error.kind(), text).because(error)))
            }
            None => {
                let text = format!("cannot {}: no credentials in time", self.request.what);
                Err(self.in_doubt(Error::new(ErrorKind::Timeout, text)))
            }
        }
    }

    /// An error that stops a call whose earlier attempts may have been executed.
    fn in_doubt(&self, error: Error) -> Error {
        if !self.doubt {
            return error;
        }
        let text = format!("cannot {}: an earlier attempt may have worked", self.request.what);
        Error::new(ErrorKind::Ambiguous, text).because(error)
    }

    /// Sends the request once, and counts it.
    async fn attempt(
        &mut self,
        limit: Option<Duration>,
        header: Option<&HeaderValue>,
    ) -> Result<Answer, Failure> {
        let clock = &self.shared.seams.clock;
        let started = clock.now();
        let time = limit.map_or(self.remaining(), |limit| limit.min(self.remaining()));
        let head = self.head_timeout().map_or(time, |head| head.min(time));
        let mut mark = Attempt::new(started + head, self.request.repeatable);
        if let Some(gate) = self.out.client.gate.as_ref().filter(|_| self.request.verb.writes()) {
            mark = mark.gated(Arc::clone(gate), clock.clone());
        }
        let request = self.out.http(header, mark.clone()).map_err(Failure::Final)?;
        let result = match clock.within(time, self.out.exchange(request)).await {
            Some(result) => result,
            None if mark.is_unsent() => {
                Err(Failure::Broken { outcome: Outcome::NotSent, source: None })
            }
            None => Err(Failure::Broken { outcome: Outcome::TimedOut, source: None }),
        };
        self.count(&result, clock.now() - started);
        if mark.was_resent() {
            self.doubt |= self.request.verb.writes();
        }
        match (result, mark.take_refusal()) {
            (Err(_), Some(refusal)) => Err(Failure::Final(refusal)),
            (result, _) => result,
        }
    }

    fn count(&self, result: &Result<Answer, Failure>, took: Duration) {
        let code = match result {
            Ok(answer) => answer.status.as_str().to_owned(),
            Err(failure) => failure.code(),
        };
        self.span.record("attempts", self.attempt).record("code", code.as_str());
        let (method, host) = (self.method(), self.shared.host.as_str());
        let metrics = &self.shared.seams.metrics;
        metrics.count(&REST_REQUESTS, &[&code, method, host], 1);
        metrics.observe(&REST_SECONDS, &[method, host], took);
    }

    /// Writes may take as long as the call: an admission webhook may be slow, and giving up early
    /// would only leave their fate unknown.
    fn head_timeout(&self) -> Option<Duration> {
        match self.request.verb {
            Verb::Get | Verb::Watch => Some(HEAD_TIMEOUT),
            Verb::List => Some(LIST_HEAD_TIMEOUT),
            _ => None,
        }
    }

    /// What the caller gets to read.
    fn error(&self, failure: Failure, why: Option<Why>) -> Error {
        let what = &self.request.what;
        let writes = self.request.verb.writes();
        let error = match failure {
            Failure::Final(error) => return self.in_doubt(error),
            Failure::Status { status, code, retry_after } => {
                let outcome = Outcome::Answered { code, retry_after };
                let error = Error::from_status(what, status).with_retry_after(retry_after);
                if writes && leaves_doubt(outcome) {
                    error.with_kind(ErrorKind::Ambiguous).note("it may have been executed")
                } else {
                    error
                }
            }
            Failure::Broken { outcome, source } => self.broken(outcome, source),
        };
        let error = match why {
            Some(Why::WaitTooLong(wait)) => {
                let seconds = wait.as_secs();
                let left = self.remaining().as_secs();
                error.note(&format!(
                    "the server asks to wait {seconds} s, which is more than the 60 s that are \
                     obeyed or the {left} s that are left"
                ))
            }
            _ => error,
        };
        let error =
            if self.doubt { error.note("an earlier attempt may have worked") } else { error };
        match self.attempt {
            1 => error,
            attempts => error.note(&format!("tried {attempts} times")),
        }
    }

    fn broken(&self, outcome: Outcome, source: Option<BoxError>) -> Error {
        let (what, host) = (&self.request.what, &self.shared.host);
        let writes = self.request.verb.writes();
        let (kind, text) = match outcome {
            Outcome::NotSent if !self.doubt => {
                (ErrorKind::Connect, format!("no connection to {host}"))
            }
            Outcome::TimedOut if !writes => {
                (ErrorKind::Timeout, format!("{host} did not answer in time"))
            }
            Outcome::TimedOut => (
                ErrorKind::Ambiguous,
                format!("{host} did not answer in time; it may have been executed"),
            ),
            _ if writes => (
                ErrorKind::Ambiguous,
                format!("the connection to {host} broke; it may have been executed"),
            ),
            _ => (ErrorKind::Transport, format!("the connection to {host} broke")),
        };
        let mut text = format!("cannot {what}: {text}");
        if let Some(source) = &source {
            // "no connection" without the reason would be of little help in a one-line log.
            if let Some(root) = root(&**source) {
                text = format!("{text}: {root}");
            }
        }
        let error = Error::new(kind, text);
        match source {
            Some(source) => error.because(source),
            None => error,
        }
    }
}

/// The innermost cause's text.
fn root(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut source = error.source()?;
    while let Some(next) = source.source() {
        source = next;
    }
    Some(source.to_string())
}
