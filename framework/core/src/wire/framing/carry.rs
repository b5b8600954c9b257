//! A reused and bounded buffer for a piece of a stream whose end has not come yet.

/// Largest piece that is kept whole, by default, in bytes; the size of client-go's watch frames.
pub const MAX_PIECE: usize = 16 * 1024 * 1024;
/// Bytes that are kept of a piece that is too large, for the metadata.
pub(crate) const KEPT_BEGINNING: usize = 256 * 1024;

/// A piece of a stream: whole, or only the beginning of a piece that was too large to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPiece<'a> {
    /// The piece, complete.
    Whole(&'a [u8]),
    /// The first bytes, at most 256 KiB, of a piece beyond the limit: enough to identify the
    /// object.
    TooLarge(&'a [u8]),
}

/// Bytes that were carried over from earlier reads.
#[derive(Debug, Default)]
pub(crate) struct CarriedBytes {
    /// The bytes; the buffer's capacity is reused for the next piece.
    bytes: Vec<u8>,
    /// Largest piece that is kept whole, in bytes.
    limit: usize,
    /// Whether the current piece is beyond the limit, so that further bytes are dropped.
    too_large: bool,
}

impl CarriedBytes {
    /// Creates an empty buffer, which allocates nothing yet.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, too_large: false }
    }

    /// Returns the size of the largest piece that is kept whole, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether no piece has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.too_large
    }

    /// Appends bytes; beyond the limit only the beginning is kept.
    pub(crate) fn extend(&mut self, piece: &[u8]) {
        // Before the lengths are compared: the buffer was cut, and would have space again.
        if self.too_large {
            return;
        }
        let length = self.bytes.len() + piece.len();
        if length <= self.limit {
            if length > self.bytes.capacity() {
                // As a vector grows, but never beyond the limit.
                let capacity = length.max((2 * self.bytes.capacity()).min(self.limit));
                self.bytes.reserve_exact(capacity - self.bytes.len());
            }
            self.bytes.extend_from_slice(piece);
            return;
        }
        self.too_large = true;
        let kept = KEPT_BEGINNING.min(self.limit);
        let missing = kept.saturating_sub(self.bytes.len()).min(piece.len());
        self.bytes.extend_from_slice(&piece[..missing]);
        self.bytes.truncate(kept);
        // The rest of a piece that is too large need not stay in memory.
        self.bytes.shrink_to(kept);
    }

    /// Completes the piece with `end` and returns the piece; call `clear` after use. A piece that
    /// needed no carrying is returned without a copy.
    pub(crate) fn complete<'a>(&'a mut self, end: &'a [u8]) -> StreamPiece<'a> {
        if self.is_empty() {
            return match end.len() <= self.limit {
                true => StreamPiece::Whole(end),
                false => StreamPiece::TooLarge(&end[..KEPT_BEGINNING.min(self.limit)]),
            };
        }
        self.extend(end);
        if self.too_large {
            StreamPiece::TooLarge(&self.bytes)
        } else {
            StreamPiece::Whole(&self.bytes)
        }
    }

    /// Prepares for the next piece.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        // One large object must not fix the buffer's size for the life of the stream.
        self.bytes.shrink_to(KEPT_BEGINNING);
        self.too_large = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carry_never_holds_more_than_its_limit() {
        let mut carry = CarriedBytes::new(1000);
        for size in 1..60 {
            carry.extend(&vec![b'x'; size]);
            assert!(carry.bytes.capacity() <= 1000, "{} bytes", carry.bytes.capacity());
        }
        assert!(matches!(carry.complete(b""), StreamPiece::TooLarge(kept) if kept.len() == 1000));
        carry.clear();
        assert!(carry.is_empty());
        assert_eq!(carry.complete(b"y"), StreamPiece::Whole(b"y"));
    }

    #[test]
    fn what_came_in_one_piece_is_not_copied() {
        let piece = vec![b'x'; KEPT_BEGINNING + 7];
        let mut carry = CarriedBytes::new(KEPT_BEGINNING);
        let whole = carry.complete(&piece[..5]);
        assert!(matches!(whole, StreamPiece::Whole(bytes) if bytes.as_ptr() == piece.as_ptr()));
        let StreamPiece::TooLarge(part) = carry.complete(&piece) else { panic!("it is too large") };
        assert_eq!((part.as_ptr(), part.len()), (piece.as_ptr(), KEPT_BEGINNING));
    }

    #[test]
    fn with_a_limit_of_nothing_everything_is_too_large() {
        let mut carry = CarriedBytes::new(0);
        carry.extend(b"x");
        assert!(!carry.is_empty());
        assert_eq!(carry.complete(b""), StreamPiece::TooLarge(b""));
    }
}
