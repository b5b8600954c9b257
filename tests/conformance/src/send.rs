//! A request on a connection, and the whole answer.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use crate::target::Stream;

/// Longest time of a request.
const DEADLINE: Duration = Duration::from_secs(30);
/// Longest time of a watch that lacks events.
const WATCH: Duration = Duration::from_secs(8);

/// An answer as received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    /// Status code; 0 if there was no answer.
    pub(crate) code: u16,
    /// All headers.
    pub(crate) headers: HeaderMap,
    /// Body, decompressed.
    pub(crate) body: Vec<u8>,
}

/// A connection that sends requests in sequence.
#[derive(Debug)]
pub(crate) struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    /// Speaks HTTP/1.1 on a stream.
    pub(crate) async fn new(stream: Box<dyn Stream>) -> Result<Self, String> {
        let shake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shake.map_err(|error| error.to_string())?;
        // Ends with the sender; a broken connection shows as a missing answer.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self(sender))
    }

    /// Sends a request and reads the answer, of a watch only the first events.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
        events: Option<(usize, String)>,
    ) -> Result<Received, String> {
        let sent = tokio::time::timeout(DEADLINE, async {
            self.0.ready().await?;
            self.0.send_request(request).await
        });
        let answer = match sent.await {
            Err(_) => return Err("no answer in time".to_owned()),
            // The server closed the connection without an answer.
            Ok(Err(_)) => return Ok(Received::default()),
            Ok(Ok(answer)) => answer,
        };
        let (head, body) = answer.into_parts();
        let is_gzip = head.headers.get("content-encoding").is_some_and(|value| value == "gzip");
        let mut bytes = read(body, events).await;
        if is_gzip {
            let mut plain = Vec::new();
            let read = flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut plain);
            read.map_err(|error| format!("bad gzip: {error}"))?;
            bytes = plain;
        }
        Ok(Received { code: head.status.as_u16(), headers: head.headers, body: bytes })
    }
}

impl Connection {
    /// Sends a request for a watch and reads a number of lines; returns their size.
    pub(crate) async fn watch(
        &mut self,
        request: Request<Full<Bytes>>,
        lines: usize,
    ) -> Result<usize, String> {
        let text = |error: hyper::Error| error.to_string();
        self.0.ready().await.map_err(text)?;
        let mut body = self.0.send_request(request).await.map_err(text)?.into_body();
        let deadline = Instant::now() + DEADLINE;
        let (mut seen, mut size) = (0, 0);
        while seen < lines {
            let frame = tokio::time::timeout_at(deadline, body.frame()).await;
            let Ok(Some(Ok(frame))) = frame else {
                return Err(format!("the watch brought {seen} of {lines} events"));
            };
            if let Ok(data) = frame.into_data() {
                seen += data.iter().filter(|byte| **byte == b'\n').count();
                size += data.len();
            }
        }
        Ok(size)
    }
}

/// Reads a body to the end, or up to a number of lines, or a line with a text.
async fn read(mut body: Incoming, events: Option<(usize, String)>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let deadline = Instant::now() + if events.is_some() { WATCH } else { DEADLINE };
    while let Ok(Some(Ok(frame))) = tokio::time::timeout_at(deadline, body.frame()).await {
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        let Some((wanted, last)) = &events else { continue };
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let text = String::from_utf8_lossy(&bytes);
        if lines >= *wanted || !last.is_empty() && text.ends_with('\n') && text.contains(last) {
            break;
        }
    }
    bytes
}
