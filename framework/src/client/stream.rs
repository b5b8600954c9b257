//! A body that arrives in pieces.

use bytes::Bytes;

use crate::error::Error;

/// The body of a watch, or of a list that is read while it arrives. Dropping it ends the request.
#[derive(Debug)]
pub struct ByteStream {
    _todo: (),
}

#[allow(clippy::unimplemented)]
impl ByteStream {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport) when the connection broke.
    /// # Cancel safety
    /// Safe: no bytes are lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        unimplemented!()
    }
}
