//! Events of simulated elections, and the queue that orders them by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use windlass_runtime::leader::ObservedRecord;
use windlass_runtime::leader::simulated::LockRequest;

/// Kind of an event.
#[derive(Debug)]
pub(super) enum EventKind {
    /// A node tries to acquire or renew.
    Wake,
    /// A request about the lease arrives at the server.
    Execute { id: u64, request: LockRequest, sent: u64 },
    /// The answer arrives.
    Response {
        id: u64,
        request: LockRequest,
        sent: u64,
        answer: Option<Box<ObservedRecord>>,
        conflict: bool,
    },
    /// No answer came in time.
    GiveUp { id: u64, request: LockRequest, sent: u64 },
    /// The work of a node attempts a write.
    Write,
    /// The server begins to execute a write that the node's gate admitted.
    Begin { until: u64 },
    /// A fault occurs at a node or at the Lease.
    Fault,
    /// The work of a node that is to release the lease has ended.
    Release,
}

/// An event at a node, in microseconds of real time.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) at: u64,
    order: u64,
    pub(super) node: usize,
    /// Number of the node's restart to which the event belongs.
    pub(super) life: u32,
    pub(super) kind: EventKind,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Events by time; those of one moment in the order of their creation.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    events: BinaryHeap<Reverse<Event>>,
    order: u64,
}

impl EventQueue {
    /// Returns a number that no other event or request has.
    pub(super) fn number(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    pub(super) fn push(&mut self, at: u64, node: usize, life: u32, kind: EventKind) {
        let order = self.number();
        self.events.push(Reverse(Event { at, order, node, life, kind }));
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.events.pop().map(|Reverse(event)| event)
    }
}
