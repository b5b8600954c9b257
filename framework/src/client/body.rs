//! Reads the body of an answer as a whole, up to a limit.
//!
//! An answer is trusted neither in its size nor in its speed. Not here: bodies that are handed on
//! piece by piece (`stream`).

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;

use super::gzip;
use super::transport::ResponseBody;
use crate::error::BoxError;

/// Largest error answer that is read; of its text an error keeps 2 KiB.
pub(super) const ERROR_BODY_LIMIT: usize = 1 << 20;
/// Memory that is reserved because of what a server announces; more comes as data arrives.
const MOST_RESERVED: u64 = 1 << 20;

/// How the reading of a body ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// At its end.
    Whole,
    /// At the limit.
    TooLong,
    /// The connection broke, or the compressed data stopped in the middle.
    Broken(BoxError),
    /// What arrived cannot be decompressed.
    Undecodable(BoxError),
}

/// Collects a body.
pub(super) struct Reader {
    body: ResponseBody,
    limit: usize,
    /// A body of one piece, as most are, is not copied. One of the two is empty.
    first: Bytes,
    read: Vec<u8>,
}

impl Reader {
    pub(super) fn new(body: ResponseBody, limit: usize) -> Self {
        Self { body, limit, first: Bytes::new(), read: Vec::new() }
    }

    /// Reads to the end. Dropped, it keeps what it has.
    pub(super) async fn run(&mut self) -> Ended {
        if self.body.size_hint().lower() > self.limit as u64 {
            return Ended::TooLong;
        }
        loop {
            let data = match self.body.frame().await {
                None => return Ended::Whole,
                Some(Err(error)) if gzip::is_undecodable(&*error) => {
                    return Ended::Undecodable(error);
                }
                Some(Err(error)) => return Ended::Broken(error),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            if self.len() + data.len() > self.limit {
                return Ended::TooLong;
            }
            self.add(data);
        }
    }

    /// What was read so far.
    pub(super) fn into_bytes(self) -> Bytes {
        if self.read.is_empty() { self.first } else { self.read.into() }
    }

    fn len(&self) -> usize {
        self.first.len() + self.read.len()
    }

    fn add(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.read.is_empty() {
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

    /// Pieces, and a length that is announced.
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

    fn reader(pieces: &[&'static [u8]], announced: u64, limit: usize) -> Reader {
        Reader::new(Pieces(pieces.iter().copied().collect(), announced).boxed_unsync(), limit)
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        for pieces in [&[&b"12345"[..]][..], &[b"1", b"23", b"", b"45"], &[b"", b"12345"]] {
            let mut whole = reader(pieces, 0, 5);
            assert!(matches!(whole.run().await, Ended::Whole));
            assert_eq!(whole.into_bytes(), "12345");
            assert!(matches!(reader(pieces, 0, 4).run().await, Ended::TooLong));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_announced_too_long_is_not_read_and_no_announcement_is_believed() {
        let mut never = reader(&[b"1"], 6, 5);
        assert!(matches!(never.run().await, Ended::TooLong));
        assert_eq!(never.into_bytes(), "");
        let mut boaster = reader(&[b"1", b"2"], 1 << 40, usize::MAX);
        assert!(matches!(boaster.run().await, Ended::Whole));
        assert!(boaster.read.capacity() < 2 << 20);
    }
}
