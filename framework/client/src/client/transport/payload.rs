//! Bodies of requests: complete bodies, and bodies that are read while the request is sent.
//!
//! A complete body is sent again as often as retries need. A streamed body is read from a reader
//! while the request is sent and exists only once: as soon as the transport has begun to read the
//! body, no other attempt can have that body, and a request that fails from then on is not retried.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, ReadBuf};

use windlass_core::error::BoxError;

/// Largest body from a file or a reader, in bytes: far more than an API server accepts (3 MiB).
pub(crate) const MAX_BODY: u64 = 64 << 20;
/// Bytes that are requested from a reader at once.
const PIECE: usize = 16 * 1024;

/// Source of the bytes of a streamed body.
pub type BodyReader = Box<dyn AsyncRead + Send + Unpin>;

/// Body of a request as passed through [layers](crate::client::ClientBuilder::layer). Clones of a
/// streamed body share the reader, and the first clone that is read takes the reader.
#[derive(Clone)]
pub struct RequestBody {
    content: PayloadContent,
}

/// Content of a body.
#[derive(Clone)]
enum PayloadContent {
    /// Complete; `None` once the body was sent.
    Whole(Option<Bytes>),
    /// Streamed, and not read through this clone.
    Shared(Arc<SharedSource>),
    /// Streamed, and being read through this clone.
    Reading(AttemptReader),
}

/// Reader of a streamed body, shared by its clones.
struct SharedSource {
    /// The reader, until an attempt takes it.
    reader: Mutex<Option<BodyReader>>,
    /// Whether an attempt has begun to read.
    touched: AtomicBool,
    /// Error of the reader, for the error text of the call.
    failure: Mutex<Option<io::Error>>,
}

/// A reader that an attempt has taken. The mutex is never locked: the mutex only makes the reader
/// `Sync`.
struct AttemptReader {
    /// `None` if another clone has taken the reader, and after the reader's failure.
    reader: Option<Mutex<BodyReader>>,
    read: u64,
    source: Arc<SharedSource>,
}

impl Clone for AttemptReader {
    // The reader stays with the original: a clone must not send the rest of the body.
    fn clone(&self) -> Self {
        Self { reader: None, read: self.read, source: Arc::clone(&self.source) }
    }
}

impl RequestBody {
    /// Creates a body that is read from `reader` while the request is sent.
    pub fn streamed(reader: BodyReader) -> Self {
        let source = SharedSource {
            reader: Mutex::new(Some(reader)),
            touched: AtomicBool::new(false),
            failure: Mutex::default(),
        };
        Self { content: PayloadContent::Shared(Arc::new(source)) }
    }

    /// Returns whether the body can be sent from the beginning.
    pub(crate) fn is_untouched(&self) -> bool {
        match &self.content {
            PayloadContent::Whole(_) => true,
            PayloadContent::Shared(source)
            | PayloadContent::Reading(AttemptReader { source, .. }) => {
                // Acquire, with the release in `poll_frame`, where a connection may begin to read
                // at the same time: then the retry finds no reader, and fails instead of sending a
                // part.
                !source.touched.load(Ordering::Acquire)
            }
        }
    }

    /// Takes the error of the reader, if it failed.
    pub(crate) fn take_failure(&self) -> Option<io::Error> {
        match &self.content {
            PayloadContent::Whole(_) => None,
            PayloadContent::Shared(source)
            | PayloadContent::Reading(AttemptReader { source, .. }) => source.failure.lock().take(),
        }
    }
}

impl AttemptReader {
    /// Reads the next chunk.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(reader) = &mut self.reader else {
            return Poll::Ready(Some(Err("the body was read by an earlier attempt".into())));
        };
        let mut piece = vec![0; PIECE];
        let mut buffer = ReadBuf::new(&mut piece);
        let result = std::task::ready!(Pin::new(reader.get_mut()).poll_read(cx, &mut buffer));
        let length = buffer.filled().len();
        self.read += length as u64;
        let failure = match result {
            Ok(()) if length == 0 => return Poll::Ready(None),
            Ok(()) if self.read <= MAX_BODY => {
                piece.truncate(length);
                return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
            }
            Ok(()) => {
                let text = format!("the reader gave more than {} MiB", MAX_BODY >> 20);
                io::Error::new(io::ErrorKind::FileTooLarge, text)
            }
            Err(error) => error,
        };
        // A body must not continue after an error.
        self.reader = None;
        let text = failure.to_string();
        *self.source.failure.lock() = Some(failure);
        Poll::Ready(Some(Err(text.into())))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let PayloadContent::Shared(source) = &self.content {
            // Set before the reader is taken: from here on no retry may send this body.
            source.touched.store(true, Ordering::Release);
            let reader = source.reader.lock().take().map(Mutex::new);
            let reading = AttemptReader { reader, read: 0, source: Arc::clone(source) };
            self.content = PayloadContent::Reading(reading);
        }
        match &mut self.content {
            PayloadContent::Whole(bytes) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            PayloadContent::Reading(reading) => reading.poll(cx),
            PayloadContent::Shared(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(
            &self.content,
            PayloadContent::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty)
        )
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            PayloadContent::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            // The length of a streamed body is unknown, so the body is sent in chunks.
            _ => SizeHint::default(),
        }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self { content: PayloadContent::Whole(Some(bytes)) }
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            PayloadContent::Whole(bytes) => {
                write!(f, "RequestBody({} bytes)", bytes.as_ref().map_or(0, Bytes::len))
            }
            _ => f.write_str("RequestBody(streamed)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_reader_is_read_once_and_by_the_first_that_asks() {
        let body = RequestBody::streamed(Box::new(&b"hello"[..]));
        let (first, second) = (body.clone(), body.clone());
        assert!(body.is_untouched());
        assert_eq!(first.collect().await.unwrap().to_bytes(), "hello");
        assert!(!body.is_untouched());
        let error = second.collect().await.unwrap_err();
        assert!(error.to_string().contains("earlier attempt"), "{error}");
    }

    #[tokio::test]
    async fn a_reader_without_end_is_cut_off_and_says_why() {
        let body = RequestBody::streamed(Box::new(tokio::io::repeat(7)));
        body.clone().collect().await.unwrap_err();
        let failure = body.take_failure().unwrap();
        assert!(failure.to_string().contains("more than 64 MiB"), "{failure}");
    }

    #[tokio::test]
    async fn a_whole_body_can_be_sent_again() {
        let body = RequestBody::from(Bytes::from_static(b"hello"));
        assert_eq!(body.size_hint().exact(), Some(5));
        for _ in 0..2 {
            assert_eq!(body.clone().collect().await.unwrap().to_bytes(), "hello");
        }
        assert!(RequestBody::default().is_end_stream());
    }
}
