//! Bodies of requests: bounded in size, in time, and together in memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_core::clock::Clock;

use crate::admission::Failure;
use crate::webhooks::MAX_BODY;

/// Longest time for a body.
pub(crate) const BODY: Duration = Duration::from_secs(10);
/// Bytes of a body that every connection may have. Most reviews are smaller.
const FREE: usize = 64 * 1024;
/// Bytes of all bodies beyond those.
const SHARED: usize = 4 * MAX_BODY;

/// Memory for large bodies: permits for bytes.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory(Arc<Semaphore>);

/// A body, and its part of the memory.
#[derive(Debug)]
pub(super) struct ReadBody {
    pub(super) bytes: Bytes,
    /// Kept until the request is answered.
    pub(super) memory: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(SHARED)))
    }

    /// Reads a body of at most that many bytes within `limit`.
    pub(super) async fn read(
        &self,
        (body, most): (Incoming, usize),
        clock: &Clock,
        limit: Duration,
    ) -> Result<ReadBody, Failure> {
        clock.timeout(limit, self.collect(body, most)).await.unwrap_or_else(|| {
            let text = format!("the body did not come within {limit:?}");
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, text))
        })
    }

    async fn collect(&self, mut body: Incoming, longest: usize) -> Result<ReadBody, Failure> {
        // A body that does not say its length is taken for the longest.
        let most = body.size_hint().upper().unwrap_or(longest as u64);
        if most > longest as u64 {
            return Err(too_large(longest));
        }
        let most = most as usize;
        // All of it before the first byte: two bodies that had a half each would wait for ever.
        let memory = match most.checked_sub(FREE).filter(|more| *more > 0) {
            None => None,
            Some(more) => {
                let permits = Arc::clone(&self.0).acquire_many_owned(more as u32).await;
                Some(permits.map_err(|_| unread("the server stops"))?)
            }
        };
        let mut bytes = Vec::with_capacity(most.min(FREE));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unread(&error.to_string()))?;
            let Ok(mut data) = frame.into_data() else { continue };
            if bytes.len() + data.remaining() > longest {
                return Err(too_large(longest));
            }
            while data.has_remaining() {
                let chunk = data.chunk();
                bytes.extend_from_slice(chunk);
                let length = chunk.len();
                data.advance(length);
            }
        }
        Ok(ReadBody { bytes: bytes.into(), memory })
    }
}

fn too_large(longest: usize) -> Failure {
    let text = format!("cannot read the body: at most {longest} bytes are accepted");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn unread(why: &str) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, format!("cannot read the body: {why}"))
}
