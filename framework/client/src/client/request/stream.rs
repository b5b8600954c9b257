//! A body that arrives in chunks, and the time limits between them.

// DESIGN.md, 19: Streams have idle limits instead of deadlines

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::prepared::Prepared;
use crate::client::transport::{ResponseBody, gzip};
use windlass_core::clock::Clock;
use windlass_core::error::{BoxError, Error, ErrorKind};
use windlass_core::resource::Verb;

/// Longest time that a list may make no progress.
const LIST_IDLE: Duration = Duration::from_secs(30);
/// Added to the time after which the server was asked to end a watch.
const WATCH_GRACE: Duration = Duration::from_secs(30);
/// Longest time for the rest of a piece of content, such as an event of a watch, that has begun to
/// arrive (A6: an answer that trickles).
const PARTIAL_LIMIT: Duration = Duration::from_secs(30);
/// Longest watch when the request names no timeout: twice the server's `--min-request-timeout` of
/// 30 min.
const LONGEST_WATCH: Duration = Duration::from_secs(3600);
/// Silence after which a log or another stream has failed. Kubelets end streams that were silent
/// for 4 h themselves (`--streaming-connection-idle-timeout`).
const OTHER_IDLE: Duration = Duration::from_secs(4 * 3600 + 30);

/// Body of a watch, of a log, or of a list that is read on arrival. Dropping the stream ends the
/// request.
///
/// A stream has no deadline as a whole, but a limit for the wait for each chunk: 30 s for a list,
/// and for a watch the `timeoutSeconds` of the request (3600 s without) and 30 s. Other streams,
/// such as a log that is followed, may be silent for 4 h and 30 s; HTTP/2 pings and TCP keep-alives
/// check every 30 s whether their connection lives. [`idle_limit`](Self::idle_limit) sets another
/// limit.
///
/// Only buffers of fixed size are read ahead (1 MiB of an HTTP/2 stream): a slow reader slows the
/// server down.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let path = ["api", "v1", "namespaces", "shop", "pods", "web-0", "log"];
/// let mut bytes = client.get().abs_path(path).param("follow", "true").stream().await?;
/// while let Some(chunk) = bytes.next().await {
///     println!("{} bytes", chunk?.len());
/// }
/// # Ok(())
/// # }
/// ```
pub struct ByteStream {
    /// Rest of the body; `None` after the end and after an error.
    body: Option<ResponseBody>,
    what: String,
    clock: Clock,
    /// Longest wait for the next chunk.
    limit: Option<Duration>,
    /// Waits since the last chunk.
    waited: ReadWaits,
    /// Armed timer and the timer's instant, no later than the end of the wait.
    alarm: Option<(Instant, Alarm)>,
}

/// A timer that is kept from one wait to the next.
type Alarm = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Time that the reader has waited; time spent outside of `next` does not count.
#[derive(Clone, Copy, Default)]
struct ReadWaits {
    /// Wait for the next bytes.
    bytes: Duration,
    /// Wait for the end of a begun piece of content, if there is a limit.
    partial: Option<Duration>,
}

impl ReadWaits {
    /// Adds the time of a wait.
    fn add(&mut self, time: Duration) {
        self.bytes += time;
        self.partial = self.partial.map(|partial| partial + time);
    }

    /// Returns the time left until a limit is reached; `None` without a limit.
    fn left(&self, limit: Option<Duration>) -> Option<Duration> {
        let bytes = limit.map(|limit| limit.saturating_sub(self.bytes));
        let partial = self.partial.map(|partial| PARTIAL_LIMIT.saturating_sub(partial));
        bytes.into_iter().chain(partial).min()
    }
}

impl ByteStream {
    /// Wraps the body of an answer to `request`, whose verb determines the default limit.
    pub(crate) fn new(body: ResponseBody, request: &Prepared, clock: Clock) -> Self {
        Self {
            body: Some(body),
            what: request.what.clone(),
            clock,
            limit: default_limit(request),
            waited: ReadWaits::default(),
            alarm: None,
        }
    }

    /// Sets the longest wait for the next chunk; `None` waits for as long as the connection lives.
    /// Time that the reader spends elsewhere does not count.
    #[must_use]
    pub fn idle_limit(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Reports that the reader is inside of a piece of content, or no longer; `another` if it
    /// differs from that of the last call. Inside of a piece, bytes that drip in do not keep the
    /// stream alive for longer than 30 s (A6: an answer that trickles).
    pub(crate) fn partial(&mut self, inside: bool, another: bool) {
        let begun = self.waited.partial.filter(|_| !another);
        self.waited.partial = inside.then(|| begun.unwrap_or_default());
    }

    /// Returns the next chunk; `None` at the end, and after an error.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`](windlass_core::ErrorKind::Transport) when the connection broke, or
    /// compressed data stopped in the middle;
    /// [`ErrorKind::Timeout`](windlass_core::ErrorKind::Timeout) when a wait reached its limit;
    /// [`ErrorKind::Decode`](windlass_core::ErrorKind::Decode) when the data cannot be
    /// decompressed.
    /// # Cancel safety
    /// Safe: no bytes are lost, and the next call goes on waiting where the present call stopped.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        let body = self.body.as_mut()?;
        // A chunk that has arrived already needs no clock and no timer.
        let piece = match at_once(piece(body)).await {
            Some(piece) => Some(piece),
            None => wait(body, &self.clock, self.limit, &mut self.waited, &mut self.alarm).await,
        };
        self.take(piece)
    }

    /// Returns the next chunk if that chunk has arrived already, in the form of
    /// [`next`](Self::next).
    #[doc(hidden)]
    pub async fn at_once(&mut self) -> Option<Option<Result<Bytes, Error>>> {
        let Some(body) = self.body.as_mut() else { return Some(None) };
        let piece = at_once(piece(body)).await?;
        Some(self.take(Some(piece)))
    }

    /// Ends the stream after the end, an error or a timeout (`None`).
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

    /// Returns the error of a wait that reached the limit.
    fn silent(&self) -> Error {
        let (what, limit) = (&self.what, self.limit.unwrap_or(Duration::MAX));
        let text = if self.waited.bytes >= limit {
            format!("cannot {what}: nothing came for {} s", limit.as_secs_f64())
        } else {
            let seconds = PARTIAL_LIMIT.as_secs();
            format!("cannot {what}: a partial frame was not completed within {seconds} s")
        };
        Error::new(ErrorKind::Timeout, text)
    }

    /// Returns the error of a body that broke or does not decompress.
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

/// Returns the longest wait for a chunk, by the verb of the request.
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

/// Polls `future` once and returns the output if `future` is ready.
pub async fn at_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    // Always ready, so the waker that the future registered is never needed.
    poll_fn(|cx| {
        Poll::Ready(match future.as_mut().poll(cx) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Waits for the next chunk; `None` at the limit of the wait.
///
/// The timer stays armed from chunk to chunk, may therefore fire early, and is then armed again:
/// arming the timer for each chunk would cost more than most chunks do.
async fn wait(
    body: &mut ResponseBody,
    clock: &Clock,
    limit: Option<Duration>,
    waited: &mut ReadWaits,
    alarm: &mut Option<(Instant, Alarm)>,
) -> Option<Option<Result<Bytes, BoxError>>> {
    loop {
        let left = waited.left(limit);
        // Checked before the poll: earlier waits may have used up the limit already.
        if left == Some(Duration::ZERO) {
            return None;
        }
        // Counts the wait even when the future is dropped: a caller that polls `next` under a
        // shorter timeout must not reset the limit.
        let waiting = WaitTimer::new(clock, waited);
        let Some(left) = left else { return Some(piece(body).await) };
        let due = waiting.since.checked_add(left).unwrap_or_else(|| clock.after(left));
        // An alarm that fires later than due would miss the limit; an earlier alarm is armed again.
        if alarm.as_ref().is_none_or(|(at, _)| *at > due) {
            let clock = clock.clone();
            *alarm = Some((due, Box::pin(async move { clock.sleep_until(due).await })));
        }
        let Some((_, armed)) = alarm else { continue };
        // Biased: data that arrived in time wins over the timer that fired in the same poll.
        tokio::select! {
            biased;
            piece = piece(body) => return Some(piece),
            () = armed.as_mut() => *alarm = None,
        }
    }
}

/// Returns the next chunk that is not empty. Trailers are skipped.
async fn piece(body: &mut ResponseBody) -> Option<Result<Bytes, BoxError>> {
    loop {
        match body.frame().await? {
            Err(error) => return Some(Err(error)),
            Ok(frame) => match frame.into_data() {
                // An empty frame is no progress and must not reset the limit.
                Ok(data) if !data.is_empty() => return Some(Ok(data)),
                _ => {}
            },
        }
    }
}

/// Guard that adds the time until the drop to `waited`.
struct WaitTimer<'a> {
    clock: &'a Clock,
    since: Instant,
    waited: &'a mut ReadWaits,
}

impl<'a> WaitTimer<'a> {
    fn new(clock: &'a Clock, waited: &'a mut ReadWaits) -> Self {
        Self { clock, since: clock.now(), waited }
    }
}

impl Drop for WaitTimer<'_> {
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
