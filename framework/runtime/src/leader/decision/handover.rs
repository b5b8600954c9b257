//! Handing a lease over on request: a process asks, the holder lends.
//!
//! The machine does not handle requests for the lease. [`Handover`] reads the records that the
//! machine has seen and the requests that the machine makes. A handover sends a request for the
//! lease when the machine has nothing more to send, declines a lease that the machine may take, and
//! sets the field `requested_by`, which no decision of the machine reads. So whatever a handover
//! does, two processes lead at once only if their machines allow it.

// DESIGN.md, 115: Handing over wraps the election machine

use jiff::Timestamp;

use super::machine::{AttemptStep, LockRequest, LockResponse, Machine, Reaction};
use crate::leader::lock::{LeaderElectionRecord, ObservedRecord};
use windlass_core::clock::ClockReading;

/// Policy of handing the lease over on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandoverPolicy {
    /// Asks a holder for the lease.
    pub asks: bool,
    /// Gives the lease to a process that asks, and lets that process lead first.
    pub lends: bool,
}

/// A machine whose process asks for the lease, or lends it.
#[derive(Debug)]
pub struct Handover {
    #[doc(hidden)]
    pub machine: Machine,
    policy: HandoverPolicy,
}

impl Handover {
    #[doc(hidden)]
    pub fn new(machine: Machine, policy: HandoverPolicy) -> Self {
        Self { machine, policy }
    }

    /// While leading: whether another process asks for the lease, and this process lends it.
    pub fn is_asked(&self) -> bool {
        self.machine.held().is_some() && self.lends_to().is_some()
    }

    /// Returns the process that asks for the lease, if this process lends it.
    fn lends_to(&self) -> Option<&str> {
        let seen = self.machine.seen().filter(|_| self.policy.lends)?;
        self.requester(&seen.record)
    }

    /// Returns the process that asks for the lease, unless this one asks.
    fn requester<'a>(&self, record: &'a LeaderElectionRecord) -> Option<&'a str> {
        let requester = record.requested_by.as_deref();
        requester.filter(|requester| *requester != self.machine.identity())
    }

    /// While leading: returns the reaction to a record that the lock reported, as
    /// [`Machine::reaction`]. A new request is a reason to read the lock.
    pub(in crate::leader) fn reaction(&self, reported: &ObservedRecord) -> Reaction {
        let is_new = self.requester(&reported.record).is_some() && !self.is_asked();
        match self.machine.reaction(reported) {
            Reaction::Renewed if self.policy.lends && is_new => Reaction::Read,
            Reaction::Renewed => Reaction::Nothing,
            reaction => reaction,
        }
    }

    /// Begins an attempt.
    pub fn attempt(&mut self, now: &ClockReading, wall: Timestamp) -> LockRequest {
        self.machine.attempt(now, wall)
    }

    /// Takes in the answer to `request`, as [`Machine::answered`]. Returns the next request of this
    /// attempt, if any.
    pub fn answered(
        &mut self,
        request: &LockRequest,
        answer: LockResponse,
        sent: &ClockReading,
        now: &ClockReading,
        wall: Timestamp,
    ) -> Option<LockRequest> {
        // A leader that finds another holder has lost the lease, and asks for the lease in a later
        // attempt.
        let was_held = self.machine.held().is_some();
        let is_seen = matches!(answer, LockResponse::Lease(_));
        let was_read = *request == LockRequest::Read;
        match self.machine.answered(request, answer, sent, now, wall) {
            AttemptStep::Send(next) => Some(next),
            AttemptStep::Take(_) if self.declines(now) => None,
            AttemptStep::Take(permit) => self.machine.take(permit, wall),
            AttemptStep::End if is_seen && was_read && !was_held => self.request(),
            AttemptStep::End => {
                if is_seen && !was_read {
                    self.stop_asking_if_unsupported();
                }
                None
            }
        }
    }

    /// Stops asking if the lock does not store requests: repeated requests would only change the
    /// lock again and again.
    fn stop_asking_if_unsupported(&mut self) {
        let Some(ObservedRecord { record, .. }) = self.machine.seen() else { return };
        let is_ours = record.holder.as_deref() == Some(self.machine.identity());
        if !is_ours && record.requested_by.is_none() {
            self.policy.asks = false;
        }
    }

    /// Whether this process leaves a lease that it may take to the requester.
    fn declines(&self, now: &ClockReading) -> bool {
        let Some(seen) = self.machine.seen().filter(|_| self.lends_to().is_some()) else {
            return false;
        };
        if seen.record.holder.is_none() {
            return self.defers_to_requester(now);
        }
        self.machine.is_ours(&seen.record) && self.leaves_to_requester(now)
    }

    /// Whether the free lease is left to the requester, for as long as the requester needs to read
    /// again.
    fn defers_to_requester(&self, now: &ClockReading) -> bool {
        self.machine.unchanged(now) < self.machine.time_to_notice()
    }

    /// Whether the record is the remainder of a term of this process whose work was cut. The
    /// requester then has the lease as soon as that term is over, and this process comes second.
    fn leaves_to_requester(&self, now: &ClockReading) -> bool {
        self.machine.held().is_none() && !self.machine.is_over_for_others(now)
    }

    /// Returns the request that asks the holder for the lease, once: a record that changed over and
    /// over would never pass on.
    fn request(&self) -> Option<LockRequest> {
        let seen = self.machine.seen().filter(|_| self.policy.asks)?;
        let ObservedRecord { record, version, .. } = seen;
        let holder = record.holder.as_deref()?;
        if holder == self.machine.identity() || record.requested_by.is_some() {
            return None;
        }
        let requested_by = Some(self.machine.identity().to_owned());
        let record = LeaderElectionRecord { requested_by, ..record.clone() };
        Some(LockRequest::Replace { version: version.clone(), record })
    }

    /// Returns the request that gives the Lease back, as [`Machine::release`]. A request for the
    /// lease stays in the released record, and says which process comes next.
    pub fn release(&mut self, wall: Timestamp) -> Option<LockRequest> {
        let request = self.machine.release(wall)?;
        let LockRequest::Replace { version, record } = request else { return Some(request) };
        let requested_by = self.lends_to().map(str::to_owned);
        Some(LockRequest::Replace {
            version,
            record: LeaderElectionRecord { requested_by, ..record },
        })
    }

    /// Returns the request that withdraws our request for the lease, if there is one; the record
    /// must be current (else the request is a read).
    pub(in crate::leader) fn withdraw(&self) -> Option<LockRequest> {
        if !self.policy.asks {
            return None;
        }
        let Some(ObservedRecord { record, version, .. }) = self.machine.current() else {
            return Some(LockRequest::Read);
        };
        let is_ours = record.requested_by.as_deref() == Some(self.machine.identity());
        is_ours.then(|| LockRequest::Replace {
            version: version.clone(),
            record: LeaderElectionRecord { requested_by: None, ..record.clone() },
        })
    }
}
