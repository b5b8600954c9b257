//! Writes in flight: their number, and the time until which abandoned writes may still be executed.
//!
//! A lease may be released only when no write that was sent under the lease can be executed any
//! more (G-L8: no write of this process can still be executed). The end of a task is not the end of
//! its write: dropping a call does not stop the server that has received the request. Therefore a
//! gate counts the admitted writes, and an abandoned write stays in doubt for the timeout that was
//! sent to the server, and a margin. Not included: the identity of the writes.

// DESIGN.md, 54: A Lease is released only after all writes sent under it have ended

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use windlass_core::clock::Clock;
use windlass_core::sync::{Mutex, Notify};

/// Counter of the writes of a lease. Cheap to clone; all clones share the count.
#[derive(Clone, Debug)]
pub struct InFlightWrites {
    inner: Arc<Inner>,
}

/// State that all clones share.
#[derive(Debug)]
struct Inner {
    clock: Clock,
    /// Extra time in which a server may work on a write beyond the timeout: the server has another
    /// clock, and the network takes time.
    margin: Duration,
    state: Mutex<State>,
    /// Notified when a write ends.
    changed: Notify,
}

/// Counters behind the lock.
#[derive(Debug, Default)]
struct State {
    /// Writes that were admitted, and neither answered nor abandoned.
    in_flight: usize,
    /// Latest instant at which an abandoned write can be executed.
    until: Option<Instant>,
}

impl InFlightWrites {
    #[doc(hidden)]
    pub fn new(clock: Clock, margin: Duration) -> Self {
        let (state, changed) = (Mutex::new(State::default()), Notify::new());
        Self { inner: Arc::new(Inner { clock, margin, state, changed }) }
    }

    /// Counts another write, until the returned guard is dropped.
    #[doc(hidden)]
    pub fn begin(&self) -> InFlightWrite {
        // Counted before the write is sent: a reader of the count must not miss a write that the
        // server has.
        self.inner.state.lock().in_flight += 1;
        InFlightWrite { writes: self.clone(), until: None }
    }

    /// Returns the number of writes in flight, and the longest time in which an abandoned write may
    /// still be executed.
    #[doc(hidden)]
    pub fn outstanding(&self) -> (usize, Duration) {
        let (in_flight, until) = self.counts();
        let now = self.inner.clock.now();
        let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        (in_flight, left)
    }

    /// Waits until no admitted write can be executed any more. Returns false when that takes longer
    /// than `limit`, and at once when an abandoned write cannot end within that limit.
    ///
    /// # Cancel safety
    /// Safe.
    #[doc(hidden)]
    pub async fn idle(&self, limit: Duration) -> bool {
        let clock = &self.inner.clock;
        let end = clock.now() + limit;
        loop {
            let mut changed = pin!(self.inner.changed.notified());
            // Registered before the counters are read, so that an end in between is not missed.
            changed.as_mut().enable();
            let now = clock.now();
            let (in_flight, until) = self.counts();
            let until = until.unwrap_or(now);
            if in_flight == 0 && until <= now {
                return true;
            }
            // An abandoned write ends by time alone: beyond the limit a wait would be of no use.
            if now >= end || until > end {
                return false;
            }
            // Abandoned writes end by time alone, the others by a notification.
            let next = if in_flight == 0 { until } else { end };
            clock.timeout(next.saturating_duration_since(now), changed).await;
        }
    }

    /// Returns the number of writes in flight and the end of the abandoned writes.
    fn counts(&self) -> (usize, Option<Instant>) {
        let state = self.inner.state.lock();
        (state.in_flight, state.until)
    }
}

/// A write in flight. The drop ends the count; a write that was sent without a known result stays
/// in doubt.
#[derive(Debug)]
#[doc(hidden)]
pub struct InFlightWrite {
    writes: InFlightWrites,
    /// Time limit that was sent to the server, once the write was sent.
    until: Option<Instant>,
}

impl Drop for InFlightWrite {
    fn drop(&mut self) {
        let Inner { margin, state, changed, .. } = &*self.writes.inner;
        let until = self.until.map(|until| until + *margin);
        let mut state = state.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        state.until = state.until.max(until);
        // Released before the wake-up: the woken waiter takes the same lock.
        drop(state);
        changed.notify_waiters();
    }
}

/// Permission of a [`WriteGate`](crate::client::WriteGate) for a single write on the way to the
/// server.
///
/// The transport reports when the write was sent and when the result is known. A write that is
/// dropped in between may still be executed, and a gate that counts writes takes that into account.
#[derive(Debug)]
pub struct WritePermit {
    /// Time that the write may take.
    limit: Option<Duration>,
    /// Guard of the count; `None` for a gate that does not count.
    write: Option<InFlightWrite>,
}

impl WritePermit {
    /// Permits a write that has to end within `limit`, if there is a limit; the write is not
    /// counted.
    pub fn within(limit: Option<Duration>) -> Self {
        Self { limit, write: None }
    }

    /// As [`within`](Self::within), counted by `write`.
    #[doc(hidden)]
    pub fn counted(limit: Option<Duration>, write: InFlightWrite) -> Self {
        Self { limit, write: Some(write) }
    }

    /// Returns the time that the write may take from now on; `None` if the gate sets no limit.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// Records that the write is sent from now on, and that the server works on the write until
    /// `until` at the latest.
    #[doc(hidden)]
    pub fn sent(&mut self, until: Instant) {
        if let Some(write) = &mut self.write {
            write.until = Some(until);
        }
    }

    /// Records that the server does not work on the write: the server has answered, or nothing was
    /// sent.
    #[doc(hidden)]
    pub fn settled(mut self) {
        if let Some(write) = &mut self.write {
            write.until = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MARGIN: Duration = Duration::from_secs(2);

    fn writes() -> (InFlightWrites, Clock) {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        (InFlightWrites::new(clock.clone(), MARGIN), clock)
    }

    fn sent(writes: &InFlightWrites, until: Instant) -> WritePermit {
        let mut out = WritePermit::counted(None, writes.begin());
        out.sent(until);
        out
    }

    #[tokio::test(start_paused = true)]
    async fn l8_what_was_answered_or_never_sent_is_waited_for_by_nobody() {
        let (writes, clock) = writes();
        drop(WritePermit::counted(None, writes.begin()));
        sent(&writes, clock.after(10 * SECOND)).settled();
        assert!(writes.idle(Duration::ZERO).await);
        assert_eq!(writes.outstanding(), (0, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn l8_what_was_given_up_is_in_doubt_for_what_the_server_was_told_and_a_margin() {
        let (writes, clock) = writes();
        drop(sent(&writes, clock.after(10 * SECOND)));
        drop(sent(&writes, clock.after(3 * SECOND)));
        let began = clock.now();
        assert!(!writes.idle(11 * SECOND).await);
        assert_eq!(clock.now(), began, "what takes longer is not waited for");
        assert_eq!(writes.outstanding(), (0, 12 * SECOND), "the longest counts");
        assert!(writes.idle(12 * SECOND).await);
        assert_eq!(clock.now() - began, 12 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn l8_an_answer_that_comes_while_somebody_waits_ends_the_wait() {
        let (writes, clock) = writes();
        let out = sent(&writes, clock.after(10 * SECOND));
        let began = clock.now();
        let answer = async {
            clock.sleep(SECOND).await;
            out.settled();
        };
        let (is_idle, ()) = tokio::join!(writes.idle(2 * SECOND), answer);
        assert!(is_idle);
        assert_eq!(clock.now() - began, SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn l8_a_write_that_is_still_awaited_is_waited_for_so_long_and_no_longer() {
        let (writes, clock) = writes();
        let _out = sent(&writes, clock.after(10 * SECOND));
        let began = clock.now();
        assert!(!writes.idle(2 * SECOND).await);
        assert_eq!(clock.now() - began, 2 * SECOND);
    }
}
