//! Oracle of simulated elections: reads real time, and counts every violation.

use std::fmt;

/// Counts of the events in some elections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ElectionCounts {
    /// Terms that began.
    pub elections: u64,
    /// Writes that the server executed.
    pub writes: u64,
    /// Writes that a gate refused.
    pub refused: u64,
    /// Writes that began while a write of another node was executing.
    pub overlaps: u64,
    /// Moments at which a write could have begun while a write of another node could have been
    /// executing.
    pub chances: u64,
    /// Nodes that crashed, and restarted without state.
    pub crashes: u64,
    /// Leases that were released.
    pub releases: u64,
    /// Leases that were not released, because a write that was given up could still be executed.
    pub left: u64,
    /// Leases that were deleted by hand, mostly while their holders hung.
    pub deleted: u64,
    /// Nodes that were frozen for up to 45 s; in half of the cases some of their clocks stopped,
    /// too.
    pub freezes: u64,
    /// Requests or answers that never arrived.
    pub lost: u64,
    /// Writes of the lease that the server refused with a conflict, and writes by other writers.
    pub conflicts: u64,
    /// Digest of all writes: equal digests mean equal histories.
    pub digest: u64,
}

impl ElectionCounts {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.elections += other.elections;
        self.writes += other.writes;
        self.refused += other.refused;
        self.overlaps += other.overlaps;
        self.chances += other.chances;
        self.crashes += other.crashes;
        self.releases += other.releases;
        self.left += other.left;
        self.deleted += other.deleted;
        self.freezes += other.freezes;
        self.lost += other.lost;
        self.conflicts += other.conflicts;
        // Last, so that the digest depends on the order of the worlds as well.
        self.note(other.digest);
    }

    /// Adds a number to the digest (FNV-1a, eight bytes at a time).
    pub(super) fn note(&mut self, number: u64) {
        self.digest = (self.digest ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    }

    /// Whether there was neither an overlap nor a chance of an overlap.
    pub fn is_safe(&self) -> bool {
        self.overlaps == 0 && self.chances == 0
    }
}

impl fmt::Display for ElectionCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} elections, {} writes ({} refused), {} crashes, {} releases, {} left to expire, {} deleted, {} freezes, {} messages \
             lost, {} conflicts; overlapping writes: {}, chances of one: {}; digest {:016x}",
            self.elections,
            self.writes,
            self.refused,
            self.crashes,
            self.releases,
            self.left,
            self.deleted,
            self.freezes,
            self.lost,
            self.conflicts,
            self.overlaps,
            self.chances,
            self.digest
        )
    }
}

/// Times until which writes of a node are executed at the server.
#[derive(Clone, Copy, Debug, Default)]
struct NodeWrites {
    /// The end of the node's last write.
    until: u64,
    /// The last moment at which a write that the gate may have admitted can be executing.
    horizon: u64,
}

/// Checks the writes of all nodes of a world.
#[derive(Debug)]
pub(super) struct Oracle {
    /// Writes of each node, by node index.
    nodes: Vec<NodeWrites>,
    /// The counts so far.
    pub(super) tally: ElectionCounts,
}

impl Oracle {
    /// Creates an oracle for this number of nodes, without any write.
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes: vec![NodeWrites::default(); nodes], tally: ElectionCounts::default() }
    }

    /// Notes that the server begins to execute a write.
    ///
    /// An overlap is counted for each other node whose write is executing at `at`; writes of the
    /// same node may overlap freely, since a leader may send several at a time.
    pub(super) fn write_begins(&mut self, at: u64, node: usize, until: u64) {
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != node);
        let overlaps = others.filter(|(_, writes)| writes.until > at).count() as u64;
        let writes = &mut self.nodes[node];
        // A later write of the node may end before an earlier write.
        writes.until = writes.until.max(until);
        self.tally.writes += 1;
        self.tally.overlaps += overlaps;
        self.tally.note(at ^ until.rotate_left(32) ^ node as u64);
    }

    /// Notes that a gate is open: a write that it admits now can be executing until `horizon`.
    ///
    /// Called after every step of a node, instead of once per write: an unsafe moment counts even
    /// if no write was attempted at that moment.
    pub(super) fn gate_is_open(&mut self, at: u64, node: usize, horizon: u64) {
        let others = self.nodes.iter().enumerate().filter(|(other, _)| *other != node);
        self.tally.chances += others.filter(|(_, writes)| writes.horizon > at).count() as u64;
        let writes = &mut self.nodes[node];
        writes.horizon = writes.horizon.max(horizon);
    }

    /// Notes that all work of the node has ended: no write of the node can be executing.
    ///
    /// Ends the horizon early: a lease that is released in order lets the next leader write at
    /// once.
    pub(super) fn work_has_ended(&mut self, at: u64, node: usize) {
        // Not a maximum: the horizon was that of the longest write that could have been admitted,
        // and none is left.
        self.nodes[node].horizon = at;
    }
}
