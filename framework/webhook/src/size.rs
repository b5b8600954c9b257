//! Sizes of reviews and answers: their bounds, and the memory that they take.

/// Longest body of a request, in bytes: two objects of 3 MiB and the review around them.
pub const MAX_BODY: usize = 7 * 1024 * 1024;
/// Longest body of a conversion, in bytes: API servers convert a whole list at once.
pub const MAX_CONVERTED: usize = 24 * 1024 * 1024;

/// The size of the reviews at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReviewSize {
    /// Longest body of a request.
    pub(crate) longest: usize,
    /// Whether an answer is about as long as its request.
    pub(crate) is_answered_in_kind: bool,
}

/// The part of the server's memory that a body and its answer have; kept until the answer is sent.
pub(crate) trait ResponseMemory: Send + 'static {
    /// Takes as many more bytes for an answer; false when there are none.
    fn grow(&mut self, bytes: usize) -> bool;
}

/// Memory without a bound, for requests whose body was read already.
impl ResponseMemory for () {
    fn grow(&mut self, _: usize) -> bool {
        true
    }
}
