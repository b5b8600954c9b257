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
    ///
    /// `id` is the number of the request, `sent` the time at which the node sent it. The server
    /// executes the request even if the node crashed meanwhile.
    Execute { id: u64, request: LockRequest, sent: u64 },
    /// The answer arrives.
    Response {
        /// Number of the request. A node drops an answer to any other request than the awaited
        /// request.
        id: u64,
        /// The request, which the election's machine needs to judge the answer.
        request: LockRequest,
        /// Time at which the request was sent: validity of a lease counts from there.
        sent: u64,
        /// The stored record after the request; `None` when there is no Lease.
        answer: Option<Box<ObservedRecord>>,
        /// Whether the server refused the write, because the version had changed.
        conflict: bool,
    },
    /// No answer came in time.
    ///
    /// The request may still be executed: a timeout says nothing about the server.
    GiveUp { id: u64, request: LockRequest, sent: u64 },
    /// The work of a node attempts a write.
    Write,
    /// The server begins to execute a write that the node's gate admitted.
    ///
    /// `until` is the time at which the execution ends.
    Begin { until: u64 },
    /// A fault occurs at a node or at the Lease.
    Fault,
    /// The work of a node that is to release the lease has ended.
    Release,
}

/// An event at a node, in microseconds of real time.
#[derive(Debug)]
pub(super) struct SimulatedEvent {
    /// Time of the event.
    pub(super) at: u64,
    /// Number of creation; decides between events of the same moment, so that a seed determines the
    /// history.
    order: u64,
    /// Index of the node in the world.
    pub(super) node: usize,
    /// Number of the node's restart to which the event belongs.
    pub(super) life: u32,
    /// Kind, with data.
    pub(super) kind: EventKind,
}

impl PartialEq for SimulatedEvent {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for SimulatedEvent {}
impl PartialOrd for SimulatedEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for SimulatedEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// Events by time; those of the same moment in the order of their creation.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    /// Reversed, because the heap pops the largest element first.
    events: BinaryHeap<Reverse<SimulatedEvent>>,
    /// The last number that was given to an event or a request; starts at 0, so that no event has
    /// number 0.
    order: u64,
}

impl EventQueue {
    /// Returns a number that no other event or request has.
    pub(super) fn number(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Adds an event at time `at` of the process `life` of a node.
    pub(super) fn push(&mut self, at: u64, node: usize, life: u32, kind: EventKind) {
        let order = self.number();
        self.events.push(Reverse(SimulatedEvent { at, order, node, life, kind }));
    }

    /// Removes the earliest event.
    pub(super) fn pop(&mut self) -> Option<SimulatedEvent> {
        self.events.pop().map(|Reverse(event)| event)
    }
}
