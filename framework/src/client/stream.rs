//! A body that arrives in pieces, and how long one waits for the next.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::gzip;
use super::transport::ResponseBody;
use super::{Prepared, Verb};
use crate::clock::Clock;
use crate::error::{BoxError, Error, ErrorKind};

/// A list that makes no progress for so long has failed.
const LIST_IDLE: Duration = Duration::from_secs(30);
/// Added to the time after which the server was asked to end a watch.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// A piece of the content, such as a watch's event, that is begun and not ended for so long (A6).
const PARTIAL_LIMIT: Duration = Duration::from_secs(30);
/// Longest watch of a server that was asked for no end: twice its `--min-request-timeout` of 30 min.
const LONGEST_WATCH: Duration = Duration::from_secs(3600);
/// Silence after which a log or another stream has failed. Kubelets end streams that were silent for
/// 4 h themselves (`--streaming-connection-idle-timeout`).
const OTHER_IDLE: Duration = Duration::from_secs(4 * 3600 + 30);

/// The body of a watch, of a log, or of a list that is read while it arrives. Dropping it ends the
/// request.
///
/// It has no deadline as a whole, but one for each piece: 30 s for a list, and for a watch the
/// `timeoutSeconds` of the request (3600 s without) and 30 s. Other streams, such as a log that is
/// followed, may be silent for 4 h and 30 s; whether their connection lives is asked every 30 s by
/// HTTP/2 pings and TCP keep-alives. [`idle_limit`](Self::idle_limit) sets another.
///
/// Nothing is read ahead but what fits into buffers of fixed size (1 MiB of an HTTP/2 stream): a
/// reader that is slow slows the server down.
pub struct ByteStream {
    body: Option<ResponseBody>,
    what: String,
    clock: Clock,
    limit: Option<Duration>,
    waited: Waited,
    /// A timer that goes off no later than the wait must end, and when.
    alarm: Option<(Instant, Alarm)>,
}

type Alarm = Pin<Box<dyn Future<Output = ()> + Send>>;

/// For how long the reader has waited; time that it spent elsewhere does not count.
#[derive(Clone, Copy, Default)]
struct Waited {
    /// For the next bytes.
    bytes: Duration,
    /// For the end of what is begun, if something is.
    partial: Option<Duration>,
}

impl Waited {
    fn add(&mut self, time: Duration) {
        self.bytes += time;
        self.partial = self.partial.map(|partial| partial + time);
    }

    /// How much longer to wait.
    fn left(&self, limit: Option<Duration>) -> Option<Duration> {
        let bytes = limit.map(|limit| limit.saturating_sub(self.bytes));
        let partial = self.partial.map(|partial| PARTIAL_LIMIT.saturating_sub(partial));
        bytes.into_iter().chain(partial).min()
    }
}

impl ByteStream {
    pub(crate) fn new(body: ResponseBody, request: &Prepared, clock: Clock) -> Self {
        Self {
            body: Some(body),
            what: request.what.clone(),
            clock,
            limit: default_limit(request),
            waited: Waited::default(),
            alarm: None,
        }
    }

    /// Longest wait for the next piece; `None` waits for as long as the connection lives. Time that
    /// the reader spends elsewhere does not count.
    #[must_use]
    pub fn idle_limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// The reader has begun something and not ended it; with `another`, something else than before.
    /// Bytes that drip in do not keep the stream alive for longer than 30 s then.
    pub(crate) fn partial(&mut self, inside: bool, another: bool) {
        let begun = self.waited.partial.filter(|_| !another);
        self.waited.partial = inside.then(|| begun.unwrap_or_default());
    }

    /// The next piece; `None` at the end, and after an error.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport) when the connection broke, or compressed
    /// data stopped in the middle; [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) when nothing
    /// came for too long; [`ErrorKind::Decode`](crate::ErrorKind::Decode) when what came cannot be
    /// decompressed.
    /// # Cancel safety
    /// Safe: no bytes are lost, and the next call goes on waiting where this one stopped.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let body = self.body.as_mut()?;
        // What is there already needs no look at the clock.
        let piece = match at_once(piece(body)).await {
            Some(piece) => Some(piece),
            None => wait(body, &self.clock, self.limit, &mut self.waited, &mut self.alarm).await,
        };
        self.take(piece)
    }

    /// The next piece when it is there already, as [`next`](Self::next) tells it.
    pub(crate) async fn at_once(&mut self) -> Option<Option<Result<Bytes, Error>>> {
        let Some(body) = self.body.as_mut() else { return Some(None) };
        let piece = at_once(piece(body)).await?;
        Some(self.take(Some(piece)))
    }

    fn take(
        &mut self,
        piece: Option<Option<Result<Bytes, BoxError>>>,
    ) -> Option<Result<Bytes, Error>> {
        match piece {
            Some(Some(Ok(data))) => {
                self.waited.bytes = Duration::ZERO;
                Some(Ok(data))
            }
            Some(None) => {
                self.body = None;
                None
            }
            Some(Some(Err(error))) => {
                self.body = None;
                Some(Err(self.broken(error)))
            }
            None => {
                self.body = None;
                Some(Err(self.silent()))
            }
        }
    }

    fn silent(&self) -> Error {
        let (what, limit) = (&self.what, self.limit.unwrap_or(Duration::MAX));
        let text = if self.waited.bytes >= limit {
            format!("cannot {what}: nothing came for {} s", limit.as_secs_f64())
        } else {
            let seconds = PARTIAL_LIMIT.as_secs();
            format!("cannot {what}: what had begun to come did not end within {seconds} s")
        };
        Error::new(ErrorKind::Timeout, text)
    }

    fn broken(&self, error: BoxError) -> Error {
        let what = &self.what;
        if gzip::is_undecodable(&*error) {
            let text = format!("cannot {what}: {error}");
            return Error::new(ErrorKind::Decode, text).because(error);
        }
        let text = format!("cannot {what}: the connection broke in the answer");
        Error::new(ErrorKind::Transport, text).because(error)
    }
}

fn default_limit(request: &Prepared) -> Option<Duration> {
    match request.verb {
        Verb::List => Some(LIST_IDLE),
        Verb::Watch => {
            let seconds = request.parameter("timeoutSeconds").and_then(|text| text.parse().ok());
            let asked = seconds.map_or(LONGEST_WATCH, Duration::from_secs);
            Some(asked.saturating_add(WATCH_GRACE))
        }
        _ => Some(OTHER_IDLE),
    }
}

/// What `future` comes to when that needs no wait.
pub(crate) async fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Waits for the next piece; `None` when it took too long.
///
/// The timer stays armed from piece to piece: it goes off early then, and is armed anew. To arm it
/// for each piece would cost more than most pieces do.
async fn wait(
    body: &mut ResponseBody,
    clock: &Clock,
    limit: Option<Duration>,
    waited: &mut Waited,
    alarm: &mut Option<(Instant, Alarm)>,
) -> Option<Option<Result<Bytes, BoxError>>> {
    loop {
        let left = waited.left(limit);
        if left == Some(Duration::ZERO) {
            return None;
        }
        let waiting = Waiting::new(clock, waited);
        let Some(left) = left else { return Some(piece(body).await) };
        let due = waiting.since.checked_add(left).unwrap_or_else(|| clock.after(left));
        if alarm.as_ref().is_none_or(|(at, _)| *at > due) {
            let clock = clock.clone();
            *alarm = Some((due, Box::pin(async move { clock.sleep_until(due).await })));
        }
        let Some((_, armed)) = alarm else { continue };
        tokio::select! {
            biased;
            piece = piece(body) => return Some(piece),
            () = armed.as_mut() => *alarm = None,
        }
    }
}

/// The next piece that is not empty. Trailers say nothing here.
async fn piece(body: &mut ResponseBody) -> Option<Result<Bytes, BoxError>> {
    loop {
        match body.frame().await? {
            Err(error) => return Some(Err(error)),
            Ok(frame) => match frame.into_data() {
                Ok(data) if !data.is_empty() => return Some(Ok(data)),
                _ => {}
            },
        }
    }
}

/// Adds the time until it is dropped.
struct Waiting<'a> {
    clock: &'a Clock,
    since: Instant,
    waited: &'a mut Waited,
}

impl<'a> Waiting<'a> {
    fn new(clock: &'a Clock, waited: &'a mut Waited) -> Self {
        Self { clock, since: clock.now(), waited }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.waited.add(self.clock.now().saturating_duration_since(self.since));
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream")
            .field("what", &self.what)
            .field("open", &self.body.is_some())
            .field("idle_limit", &self.limit)
            .finish_non_exhaustive()
    }
}
