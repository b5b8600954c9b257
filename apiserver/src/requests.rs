//! Log of answered requests: a bounded ring that tests inspect.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// An answered request. Texts are cut at 256 bytes, because clients decide about the length.
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

/// Longest text of a kept request, in bytes.
const LONGEST: usize = 256;

/// Number of requests that are kept; older requests are dropped.
const KEPT: usize = 16_384;

impl Request {
    /// Cuts all texts at [`LONGEST`] bytes.
    fn cut(&mut self) {
        let Self {
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            user,
            agent,
            code: _,
            at: _,
        } = self;
        for text in [verb, group, resource, subresource, namespace, name, user, agent] {
            let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
            // The memory as well: a text keeps its first allocation.
            text.shrink_to_fit();
        }
    }
}

/// Ring of the last requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    ring: Mutex<VecDeque<Request>>,
    /// Handlers that panicked.
    panics: AtomicU64,
    /// All requests, also those that the ring no longer holds.
    count: AtomicU64,
}

impl Requests {
    /// Returns an empty ring.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a request, and drops the oldest if the ring is full.
    pub(crate) fn record(&self, mut request: Request) {
        request.cut();
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut ring = self.ring.lock();
        // Bounded: long tests make more requests than memory should hold.
        if ring.len() == KEPT {
            ring.pop_front();
        }
        ring.push_back(request);
    }

    /// Returns all kept requests, oldest first.
    pub(crate) fn all(&self) -> Vec<Request> {
        // A copy: requests are recorded while tests look at the ring.
        self.ring.lock().iter().cloned().collect()
    }

    /// Returns the number of all requests.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a handler that panicked; returns their number.
    pub(crate) fn count_panic(&self) -> u64 {
        // `Relaxed`: nothing else depends on the number.
        self.panics.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number of handlers that panicked.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Drops all kept requests.
    pub(crate) fn clear(&self) {
        self.ring.lock().clear();
    }
}
