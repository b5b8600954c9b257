//! Write gate of a term: lets a write out only while the lease is valid, and for no longer.
//!
//! Invariants: a closed gate never opens again; validity never grows by a late answer, because
//! validity counts from the time at which the renewal was about to be sent; a permitted write is
//! counted in `in_flight_writes` until the answer, so the lease is not given back before.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::durations::{LeaseDurations, MIN_VALIDITY};
use windlass_client::client::{InFlightWrites, WriteGate, WritePermit};
use windlass_core::clock::{Clock, ClockReading};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::sync::Mutex;

/// Write gate that is open while the lease of a term is valid; closed for good when the term ends.
///
/// Cheap to clone; all clones close together. A write is permitted while at least one second of
/// validity is left, and has that validity as its deadline.
#[derive(Clone)]
pub struct LeaseGate {
    inner: Arc<Inner>,
}

struct Inner {
    /// Name of the lock, for errors.
    lease: String,
    /// Clock of validity.
    clock: Clock,
    /// Durations of the election.
    timing: LeaseDurations,
    /// Clock reading just before the last successful acquisition or renewal was sent.
    renewed: Mutex<Option<ClockReading>>,
    /// Writes that were let out in all terms of this process: another process may have the lease
    /// only when none of them is executed any more.
    in_flight_writes: InFlightWrites,
}

impl LeaseGate {
    /// Creates an open gate for a lease whose renewal was sent at `renewed`.
    pub(super) fn new(
        lease: String,
        clock: Clock,
        timing: LeaseDurations,
        renewed: ClockReading,
        in_flight_writes: InFlightWrites,
    ) -> Self {
        let renewed = Mutex::new(Some(renewed));
        Self { inner: Arc::new(Inner { lease, clock, timing, renewed, in_flight_writes }) }
    }

    /// Returns the time for which the lease is still valid; `None` after the end of validity.
    ///
    /// At most lease duration - margin: 13 s with the defaults.
    pub fn validity(&self) -> Option<Duration> {
        let renewed = *self.inner.renewed.lock();
        remaining(&self.inner.timing, &renewed?, &self.inner.clock.reading())
    }

    /// Returns the time since validity ended without the term having been ended; `None` while the
    /// lease is valid, and after the end. The renewing task ends a term whose lease is over, so a
    /// value that keeps growing means that the election is stuck.
    pub fn overdue(&self) -> Option<Duration> {
        let renewed = (*self.inner.renewed.lock())?;
        let elapsed = renewed.longest_until(&self.inner.clock.reading());
        elapsed.checked_sub(self.inner.timing.validity())
    }

    /// Counts validity from `sent`, unless the gate is closed.
    pub(super) fn renewed(&self, sent: ClockReading) {
        let mut renewed = self.inner.renewed.lock();
        // A late answer to a renewal must not open a closed gate again.
        if renewed.is_some() {
            *renewed = Some(sent);
        }
    }

    /// Closes the gate for good.
    pub(super) fn close(&self) {
        *self.inner.renewed.lock() = None;
    }
}

/// Ends the renewing of a term on drop, also by a panic: the gate closes before any listener is
/// notified, so every notified listener finds a closed gate.
pub(super) struct CloseOnDrop<T: FnMut()> {
    pub(super) gate: LeaseGate,
    pub(super) notify: T,
}

impl<T: FnMut()> Drop for CloseOnDrop<T> {
    fn drop(&mut self) {
        self.gate.close();
        (self.notify)();
    }
}

/// Returns the validity that is left of a lease whose renewal was sent at `sent`.
pub fn remaining(
    timing: &LeaseDurations,
    sent: &ClockReading,
    now: &ClockReading,
) -> Option<Duration> {
    timing.validity().checked_sub(sent.longest_until(now)).filter(|left| !left.is_zero())
}

/// Returns `left` if that validity is enough to send a write.
pub fn worth_sending(left: Option<Duration>) -> Option<Duration> {
    left.filter(|left| *left >= MIN_VALIDITY)
}

impl WriteGate for LeaseGate {
    /// Returns the validity that is left, or why the write must not be sent.
    fn admit(&self) -> Result<Option<Duration>, Error> {
        let left = self.validity();
        worth_sending(left).map(Some).ok_or_else(|| {
            let state = match left {
                Some(left) => format!("its lease has only {} ms left", left.as_millis()),
                None => "it does not hold the lease".to_owned(),
            };
            let text = format!(
                "refused to write as leader of {}: {state}; the next leader repeats the work",
                self.inner.lease
            );
            Error::new(ErrorKind::NotLeader, text)
        })
    }

    /// Counts a write and permits its sending; the permit carries the deadline.
    fn begin_write(&self) -> Result<WritePermit, Error> {
        // Counted before the check: the caller that closes the gate and then finds no write under
        // way knows that none will follow.
        let write = self.inner.in_flight_writes.begin();
        let limit = self.admit()?;
        Ok(WritePermit::counted(limit, write))
    }
}

impl fmt::Debug for LeaseGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseGate")
            .field("lease", &self.inner.lease)
            .field("validity", &self.validity())
            .finish()
    }
}
