//! Reading the body of an answer as a whole, up to a limit.
//!
//! Neither size nor speed of an answer is trusted. Not included: bodies that are passed on in
//! chunks (`stream`).

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;

use super::gzip;
use super::message::ResponseBody;
use windlass_core::error::BoxError;

/// Largest error answer that is read; an error keeps 2 KiB of the text.
pub(in crate::client) const ERROR_BODY_LIMIT: usize = 1 << 20;
/// Most memory that is reserved because of an announced length; more is allocated as data arrives.
const MOST_RESERVED: u64 = 1 << 20;

/// End of the reading of a body.
#[derive(Debug)]
pub(in crate::client) enum BodyEnd {
    /// The body ended.
    Whole,
    /// The body is larger than the limit.
    TooLong,
    /// The connection broke, or the compressed data stopped in the middle.
    Broken(BoxError),
    /// The data cannot be decompressed.
    Undecodable(BoxError),
}

/// Collector of a body.
pub(in crate::client) struct BoundedReader {
    body: ResponseBody,
    limit: usize,
    /// First chunk; a body of a single chunk, the usual case, is not copied. Either this or `read`
    /// is empty.
    first: Bytes,
    /// All chunks, from the second chunk on.
    read: Vec<u8>,
}

impl BoundedReader {
    /// Creates a reader of at most `limit` bytes.
    pub(in crate::client) fn new(body: ResponseBody, limit: usize) -> Self {
        Self { body, limit, first: Bytes::new(), read: Vec::new() }
    }

    /// Reads to the end. A reader whose future is dropped keeps the bytes read so far.
    pub(in crate::client) async fn run(&mut self) -> BodyEnd {
        // An announced length beyond the limit makes reading pointless.
        if self.body.size_hint().lower() > self.limit as u64 {
            return BodyEnd::TooLong;
        }
        loop {
            let data = match self.body.frame().await {
                None => return BodyEnd::Whole,
                Some(Err(error)) if gzip::is_undecodable(&*error) => {
                    return BodyEnd::Undecodable(error);
                }
                Some(Err(error)) => return BodyEnd::Broken(error),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            // Checked before the copy, so that memory stays below the limit.
            if self.len() + data.len() > self.limit {
                return BodyEnd::TooLong;
            }
            self.add(data);
        }
    }

    /// Returns the bytes read so far.
    pub(in crate::client) fn into_bytes(self) -> Bytes {
        if self.read.is_empty() { self.first } else { self.read.into() }
    }

    fn len(&self) -> usize {
        self.first.len() + self.read.len()
    }

    /// Appends a chunk.
    fn add(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.read.is_empty() {
            // An announced length is not trusted: a lie would reserve memory for nothing.
            let announced = self.body.size_hint().lower().min(MOST_RESERVED);
            self.read
                .reserve(self.first.len() + data.len() + usize::try_from(announced).unwrap_or(0));
            self.read.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.read.extend_from_slice(&data);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http_body::{Frame, SizeHint};

    use super::*;

    /// Chunks, and an announced length.
    struct Pieces(VecDeque<&'static [u8]>, u64);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            let piece = self.0.pop_front();
            Poll::Ready(piece.map(|piece| Ok(Frame::data(Bytes::from_static(piece)))))
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.1);
            hint
        }
    }

    fn reader(pieces: &[&'static [u8]], announced: u64, limit: usize) -> BoundedReader {
        BoundedReader::new(
            Pieces(pieces.iter().copied().collect(), announced).boxed_unsync(),
            limit,
        )
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        for pieces in [&[&b"12345"[..]][..], &[b"1", b"23", b"", b"45"], &[b"", b"12345"]] {
            let mut whole = reader(pieces, 0, 5);
            assert!(matches!(whole.run().await, BodyEnd::Whole));
            assert_eq!(whole.into_bytes(), "12345");
            assert!(matches!(reader(pieces, 0, 4).run().await, BodyEnd::TooLong));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_announced_too_long_is_not_read_and_no_announcement_is_believed() {
        let mut never = reader(&[b"1"], 6, 5);
        assert!(matches!(never.run().await, BodyEnd::TooLong));
        assert_eq!(never.into_bytes(), "");
        let mut oversized = reader(&[b"1", b"2"], 1 << 40, usize::MAX);
        assert!(matches!(oversized.run().await, BodyEnd::Whole));
        assert!(oversized.read.capacity() < 2 << 20);
    }
}
