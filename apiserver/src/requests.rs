//! What clients asked: a ring of past requests for tests to look at.

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
    /// Subresource, may be empty.
    pub subresource: String,
    /// Namespace, may be empty.
    pub namespace: String,
    /// Name, may be empty.
    pub name: String,
    /// Who asked.
    pub user: String,
    /// `User-Agent` header.
    pub agent: String,
    /// Status code of the answer; 0 when the connection was dropped instead.
    pub code: u16,
    /// Milliseconds since the server started.
    pub at: u64,
}

/// How many requests are remembered.
const KEPT: usize = 16_384;

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    ring: Mutex<VecDeque<Request>>,
}

impl Requests {
    /// An empty ring.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a request.
    pub(crate) fn record(&self, request: Request) {
        let mut ring = self.ring.lock();
        if ring.len() == KEPT {
            ring.pop_front();
        }
        ring.push_back(request);
    }

    /// All remembered requests, oldest first.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.ring.lock().iter().cloned().collect()
    }

    /// Forgets them.
    pub(crate) fn clear(&self) {
        self.ring.lock().clear();
    }
}
