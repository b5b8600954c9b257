//! A body that arrives in pieces.

use std::fmt;

use bytes::Bytes;
use http_body_util::BodyExt;

use super::transport::ResponseBody;
use crate::error::{Error, ErrorKind};

/// The body of a watch, or of a list that is read while it arrives. Dropping it ends the request.
///
/// It has no deadline: a reader that expects life signs waits for the next piece within its own.
pub struct ByteStream {
    body: Option<ResponseBody>,
    what: String,
}

impl ByteStream {
    pub(crate) fn new(body: ResponseBody, what: String) -> Self {
        Self { body: Some(body), what }
    }

    /// The next piece; `None` at the end, and after an error.
    ///
    /// # Errors
    /// [`ErrorKind::Transport`](crate::ErrorKind::Transport) when the connection broke.
    /// # Cancel safety
    /// Safe: no bytes are lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        loop {
            match self.body.as_mut()?.frame().await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => return Some(Ok(data)),
                    // Trailers say nothing here.
                    Err(_) => {}
                },
                Some(Err(error)) => {
                    self.body = None;
                    let text = format!("cannot {}: the connection broke in the answer", self.what);
                    return Some(Err(Error::new(ErrorKind::Transport, text).because(error)));
                }
                None => {
                    self.body = None;
                    return None;
                }
            }
        }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream")
            .field("what", &self.what)
            .field("open", &self.body.is_some())
            .finish()
    }
}
