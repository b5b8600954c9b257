//! Log of answered requests: a bounded ring that tests inspect.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// One answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for paths
    /// that are no resources the lower-case method.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural, or the path.
    pub resource: String,
    /// Subresource; may be empty.
    pub subresource: String,
    /// Namespace; may be empty.
    pub namespace: String,
    /// Name; may be empty.
    pub name: String,
    /// Name of the user.
    pub user: String,
    /// `User-Agent` header.
    pub agent: String,
    /// Status code of the answer; 0 when the connection was dropped instead.
    pub code: u16,
    /// Milliseconds since the server started.
    pub at: u64,
}

/// Number of requests that are kept; older ones are dropped.
const KEPT: usize = 16_384;

/// Ring of the last requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    ring: Mutex<VecDeque<Request>>,
}

impl Requests {
    /// Returns an empty ring.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a request, and drops the oldest one if the ring is full.
    pub(crate) fn record(&self, request: Request) {
        let mut ring = self.ring.lock();
        // Bounded: long tests make more requests than memory should hold.
        if ring.len() == KEPT {
            ring.pop_front();
        }
        ring.push_back(request);
    }

    /// Returns all kept requests, oldest first.
    pub(crate) fn all(&self) -> Vec<Request> {
        // A copy: requests are recorded while tests look at it.
        self.ring.lock().iter().cloned().collect()
    }

    /// Drops all kept requests.
    pub(crate) fn clear(&self) {
        self.ring.lock().clear();
    }
}
