//! Bodies of requests: bounded in size, in time, and together in memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use windlass_core::clock::Clock;

use crate::admission::HttpFailure;
use crate::size::{MAX_BODY, MAX_CONVERTED, ResponseMemory, ReviewSize};

/// Longest time for a body.
pub(crate) const BODY: Duration = Duration::from_secs(10);
/// Bytes of a body that every connection may have. Most reviews are smaller.
const FREE: usize = 64 * 1024;
/// Bytes of all bodies of admission beyond those.
const ADMISSION: usize = 4 * MAX_BODY;
/// Bytes of all conversions beyond those: the longest with an answer that is a quarter longer.
const CONVERSIONS: usize = MAX_CONVERTED * 9 / 4;

/// Memory for large bodies: permits for bytes.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory {
    admission: Arc<Semaphore>,
    /// Separate permits: long lists do not hold up admission.
    conversions: Arc<Semaphore>,
}

/// A body, and its part of the memory.
#[derive(Debug)]
pub(super) struct ReadBody {
    pub(super) bytes: Bytes,
    pub(super) memory: BodyPermit,
}

/// A part of the memory: that of a body and of its answer.
#[derive(Debug)]
pub(super) struct BodyPermit {
    pool: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    /// Bytes of an answer that were taken already, or are free.
    left: usize,
}

impl ResponseMemory for BodyPermit {
    fn grow(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.left);
        self.left = self.left.saturating_sub(bytes);
        let Some(more) = u32::try_from(more).ok().filter(|more| *more > 0) else {
            return more == 0;
        };
        // No wait: two answers that had a half each would wait for ever.
        let Ok(permit) = Arc::clone(&self.pool).try_acquire_many_owned(more) else { return false };
        match &mut self.permit {
            Some(all) => all.merge(permit),
            none => *none = Some(permit),
        }
        true
    }
}

impl BodyMemory {
    pub(super) fn new() -> Self {
        let pool = |bytes| Arc::new(Semaphore::new(bytes));
        Self { admission: pool(ADMISSION), conversions: pool(CONVERSIONS) }
    }

    /// Reads a body within `limit`.
    pub(super) async fn read(
        &self,
        (body, size): (Incoming, ReviewSize),
        clock: &Clock,
        limit: Duration,
    ) -> Result<ReadBody, HttpFailure> {
        clock.timeout(limit, self.collect(body, size)).await.unwrap_or_else(|| {
            let text = format!("the body did not come within {limit:?}");
            Err(HttpFailure::new(StatusCode::REQUEST_TIMEOUT, text))
        })
    }

    async fn collect(&self, mut body: Incoming, size: ReviewSize) -> Result<ReadBody, HttpFailure> {
        let longest = size.longest;
        // A body that does not say its length is taken for the longest.
        let most = body.size_hint().upper().unwrap_or(longest as u64);
        if most > longest as u64 {
            return Err(too_large(longest));
        }
        let most = most as usize;
        let memory = self.reserve(most, size.is_answered_in_kind).await?;
        let mut bytes = Vec::with_capacity(most.min(FREE));
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unread(&error.to_string()))?;
            let Ok(mut data) = frame.into_data() else { continue };
            if bytes.len() + data.remaining() > longest {
                return Err(too_large(longest));
            }
            if bytes.len() + data.remaining() > bytes.capacity() {
                // The permit covers `most` bytes; growth by doubling would exceed it.
                bytes.reserve_exact(most.max(bytes.len() + data.remaining()) - bytes.len());
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

    /// Takes memory for a body and its answer, all of it before the first byte: two bodies that had
    /// a half each would wait for ever.
    async fn reserve(
        &self,
        body: usize,
        is_answered_in_kind: bool,
    ) -> Result<BodyPermit, HttpFailure> {
        let (pool, answer) = match is_answered_in_kind {
            true => (&self.conversions, body * 5 / 4),
            false => (&self.admission, 0),
        };
        let pool = Arc::clone(pool);
        let more = body.saturating_sub(FREE) + answer.saturating_sub(FREE);
        let permit = match u32::try_from(more) {
            Ok(0) => None,
            Ok(more) => {
                let permits = Arc::clone(&pool).acquire_many_owned(more).await;
                Some(permits.map_err(|_| unread("the server stops"))?)
            }
            Err(_) => return Err(too_large(body)),
        };
        // An answer begins with room for as many bytes as its request has.
        let left = answer.max(FREE).saturating_sub(body);
        Ok(BodyPermit { pool, permit, left })
    }
}

fn too_large(longest: usize) -> HttpFailure {
    let text = format!("cannot read the body: at most {longest} bytes are accepted");
    HttpFailure::new(StatusCode::PAYLOAD_TOO_LARGE, text)
}

fn unread(why: &str) -> HttpFailure {
    HttpFailure::new(StatusCode::BAD_REQUEST, format!("cannot read the body: {why}"))
}
