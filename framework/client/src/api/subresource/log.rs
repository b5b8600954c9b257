//! Output of a container, as bytes and as lines.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;

use crate::api::ApiFuture;
use crate::api::draft::Draft;
use crate::client::ByteStream;
use windlass_core::error::Error;

/// Longest line in bytes; a longer line is returned in pieces.
const LINE_LIMIT: usize = 1 << 20;

/// A request for a Pod's log; await the request for a [`LogStream`], or take the
/// [`text`](Self::text).
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use std::time::Duration;
/// # use k8s_openapi::api::core::v1::Pod;
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let pods = client.namespace::<Pod>("shop");
/// let hour = Duration::from_secs(3600);
/// let text = pods.log("web-0").container("web").since(hour).timestamps().text().await?;
/// println!("{text}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Client::stream`](crate::client::Client::stream);
/// [`BadRequest`](windlass_core::ErrorKind::BadRequest) when the container has not started, or when
/// the Pod has several and the request names none.
/// # Cancel safety
/// Dropping the future cancels the request.
#[must_use = "a request does nothing until it is awaited"]
pub struct Log {
    draft: Draft,
}

impl Log {
    pub(crate) fn new(draft: Draft) -> Self {
        Self { draft }
    }

    fn set(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.draft.set(key, value);
        self
    }

    /// Name of the container. Needed when the Pod has several.
    ///
    /// Default: the Pod's only container.
    pub fn container(self, name: &str) -> Self {
        self.set("container", name)
    }

    /// Continues with new output of the container, until it ends.
    ///
    /// Default: the log up to now.
    pub fn follow(self) -> Self {
        self.set("follow", "true")
    }

    /// Reads the log of the container's last run, before the restart.
    ///
    /// [`BadRequest`](windlass_core::ErrorKind::BadRequest) when the container was never restarted.
    pub fn previous(self) -> Self {
        self.set("previous", "true")
    }

    /// Reads only the last `time`, in whole seconds, at least 1 s.
    ///
    /// Default: from the beginning of the log that the kubelet keeps. Replaces
    /// [`since_time`](Self::since_time).
    pub fn since(mut self, time: Duration) -> Self {
        // API servers refuse both parameters together.
        self.draft.unset("sinceTime");
        self.set("sinceSeconds", time.as_secs().max(1).to_string())
    }

    /// Reads only lines from `time` on; replaces [`since`](Self::since).
    pub fn since_time(mut self, time: Timestamp) -> Self {
        self.draft.unset("sinceSeconds");
        self.set("sinceTime", time.to_string())
    }

    /// Reads only the last `lines`.
    ///
    /// 0 reads no earlier line, which is useful with [`follow`](Self::follow).
    pub fn tail(self, lines: u64) -> Self {
        self.set("tailLines", lines.to_string())
    }

    /// Puts the time of printing at the start of each line.
    ///
    /// RFC 3339 with nanoseconds, and a blank.
    pub fn timestamps(self) -> Self {
        self.set("timestamps", "true")
    }

    /// Ends after this many bytes.
    ///
    /// The last line may be cut.
    pub fn limit_bytes(self, bytes: u64) -> Self {
        self.set("limitBytes", bytes.to_string())
    }

    /// Time up to the first byte of a stream, or for the whole text. Default: the client's, 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.draft.set_timeout(timeout);
        self
    }

    /// Reads the whole log at once, at most 64 MiB. Bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    /// Those of [`Client::send`](crate::client::Client::send);
    /// [`Usage`](windlass_core::ErrorKind::Usage) for a log that is [followed](Self::follow).
    /// # Cancel safety
    /// Dropping the future cancels the request.
    pub async fn text(mut self) -> Result<String, Error> {
        if self.draft.is_set("follow") {
            self.draft.refuse("a log that is followed has no end; await it and read its lines");
        }
        self.draft.send(|_, body, _| Ok(String::from_utf8_lossy(body).into_owned())).await
    }
}

impl IntoFuture for Log {
    type Output = Result<LogStream, Error>;
    type IntoFuture = ApiFuture<'static, LogStream>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Ok(LogStream::new(self.draft.stream().await?)) })
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("draft", &self.draft).finish()
    }
}

/// A log, read as it arrives. A drop ends the request.
///
/// [`next_line`](Self::next_line) and [`next_bytes`](Self::next_bytes) may be mixed.
pub struct LogStream {
    bytes: ByteStream,
    lines: LogLines,
}

impl LogStream {
    fn new(bytes: ByteStream) -> Self {
        Self { bytes, lines: LogLines::default() }
    }

    /// Returns the next line, without the line end; `None` at the end of the log. A last line
    /// without an end is returned too. A line longer than 1 MiB comes in pieces; bytes that are no
    /// UTF-8 are replaced.
    ///
    /// # Errors
    /// [`Transport`](windlass_core::ErrorKind::Transport) when the connection broke.
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next_line(&mut self) -> Option<Result<String, Error>> {
        loop {
            if let Some(line) = self.lines.pop() {
                return Some(Ok(line));
            }
            match self.bytes.next().await {
                Some(Ok(bytes)) => self.lines.push(&bytes),
                Some(Err(error)) => return Some(Err(error)),
                None => return self.lines.rest().map(Ok),
            }
        }
    }

    /// Returns the next bytes, as they arrive; `None` at the end of the log. Bytes that
    /// [`next_line`](Self::next_line) has read for an incomplete line are returned first.
    ///
    /// # Errors
    /// [`Transport`](windlass_core::ErrorKind::Transport) when the connection broke.
    /// # Cancel safety
    /// Safe: nothing is lost.
    pub async fn next_bytes(&mut self) -> Option<Result<Bytes, Error>> {
        match self.lines.take() {
            Some(bytes) => Some(Ok(bytes)),
            None => self.bytes.next().await,
        }
    }
}

impl fmt::Debug for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStream").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Splits bytes into lines.
#[derive(Default)]
struct LogLines {
    buffer: Vec<u8>,
    /// Offset of the first line that was not returned.
    start: usize,
    /// Offset before which no line ends.
    searched: usize,
}

impl LogLines {
    /// Appends bytes that arrived.
    fn push(&mut self, piece: &[u8]) {
        // Returned lines are removed once per piece, not once per line.
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(piece);
    }

    /// Returns the next complete line, or a piece of a line that is too long.
    fn pop(&mut self) -> Option<String> {
        let end = memchr::memchr(b'\n', &self.buffer[self.searched..])
            .map(|at| self.searched + at)
            .filter(|end| end - self.start <= LINE_LIMIT);
        let (end, next) = match end {
            Some(end) => (end, end + 1),
            None if self.buffer.len() - self.start > LINE_LIMIT => {
                (self.start + LINE_LIMIT, self.start + LINE_LIMIT)
            }
            None => {
                // The next search begins with the next piece, not with the line again.
                self.searched = self.buffer.len();
                return None;
            }
        };
        let line = text(&self.buffer[self.start..end]);
        (self.start, self.searched) = (next, next);
        Some(line)
    }

    /// Returns the last line, which has no end.
    fn rest(&mut self) -> Option<String> {
        self.take().map(|rest| text(&rest))
    }

    /// Returns all bytes that were pushed and not returned as lines.
    fn take(&mut self) -> Option<Bytes> {
        let rest = self.buffer.split_off(self.start);
        *self = Self::default();
        (!rest.is_empty()).then(|| rest.into())
    }
}

/// A line as text, without a carriage return at the end.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = LogLines::default();
        pieces.iter().for_each(|piece| lines.push(piece));
        let mut all: Vec<_> = std::iter::from_fn(|| lines.pop()).collect();
        all.extend(lines.rest());
        all
    }

    #[test]
    fn lines_are_the_same_wherever_the_log_is_cut() {
        let log = b"one\r\n\ntwo\xff\nthree";
        for cut in 0..log.len() {
            assert_eq!(lines(&[&log[..cut], &log[cut..]]), ["one", "", "two\u{fffd}", "three"]);
        }
    }

    #[test]
    fn an_endless_line_comes_in_pieces() {
        let long = vec![b'x'; LINE_LIMIT + 3];
        let lengths = |pieces: &[&[u8]]| lines(pieces).iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(lengths(&[&long]), [LINE_LIMIT, 3]);
        assert_eq!(lengths(&[&long[..7], &long[7..]]), [LINE_LIMIT, 3]);
        assert_eq!(lengths(&[&long[..LINE_LIMIT], b"\ny"]), [LINE_LIMIT, 1]);
    }

    #[test]
    fn bytes_read_for_a_line_are_not_lost_to_a_reader_of_bytes() {
        let mut lines = LogLines::default();
        lines.push(b"a\nb\nc");
        assert_eq!(lines.pop().as_deref(), Some("a"));
        assert_eq!(lines.take().as_deref(), Some(&b"b\nc"[..]));
        assert_eq!(lines.take(), None);
    }
}
