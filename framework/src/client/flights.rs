//! Writes under way: how many there are, and until when those may be executed that nobody waits for.
//!
//! Who gives a lease back must know that nothing sent under it is executed any more. A task that ended
//! is not a write that ended: dropping a call does not stop the server that has it. So a gate counts
//! what it lets out, and a write that is given up stays in doubt for as long as the server was told to
//! work on it, and a margin. Absent: which writes they are.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::sync::{Mutex, Notify};

/// Counts the writes of one lease. Cheap to clone; all clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Flights {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    /// How much longer than it was told a server may work: its clock is another one, and the way to it
    /// takes time.
    margin: Duration,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Let out, and neither answered nor given up.
    aloft: usize,
    /// The latest moment at which a write that was given up can be executed.
    until: Option<Instant>,
}

impl Flights {
    pub(crate) fn new(clock: Clock, margin: Duration) -> Self {
        let (state, changed) = (Mutex::new(State::default()), Notify::new());
        Self { inner: Arc::new(Inner { clock, margin, state, changed }) }
    }

    /// Counts one more, until what it returns is dropped.
    pub(crate) fn begin(&self) -> Flight {
        self.inner.state.lock().aloft += 1;
        Flight { flights: self.clone(), until: None }
    }

    /// How many are under way, and for how long one that was given up may still be executed.
    pub(crate) fn doubts(&self) -> (usize, Duration) {
        let (aloft, until) = self.look();
        let now = self.inner.clock.now();
        let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        (aloft, left)
    }

    /// Waits until nothing that was let out can be executed any more; false when that takes longer than
    /// `limit`, and at once when it must.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn idle(&self, limit: Duration) -> bool {
        let clock = &self.inner.clock;
        let end = clock.now() + limit;
        loop {
            let mut changed = pin!(self.inner.changed.notified());
            // Registered before the look, so that no end falls in between.
            changed.as_mut().enable();
            let now = clock.now();
            let (aloft, until) = self.look();
            let until = until.unwrap_or(now);
            if aloft == 0 && until <= now {
                return true;
            }
            if now >= end || until > end {
                return false;
            }
            let next = if aloft == 0 { until } else { end };
            clock.within(next.saturating_duration_since(now), changed).await;
        }
    }

    fn look(&self) -> (usize, Option<Instant>) {
        let state = self.inner.state.lock();
        (state.aloft, state.until)
    }
}

/// One write under way. Dropped, it is over, unless it was sent and nobody learned what became of it.
#[derive(Debug)]
pub(crate) struct Flight {
    flights: Flights,
    /// When the server was told to end, once it was sent.
    until: Option<Instant>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        let Inner { margin, state, changed, .. } = &*self.flights.inner;
        let until = self.until.map(|until| until + *margin);
        let mut state = state.lock();
        state.aloft = state.aloft.saturating_sub(1);
        state.until = state.until.max(until);
        drop(state);
        changed.notify_waiters();
    }
}

/// A write that a [`WriteGate`](super::WriteGate) let out, on its way to the server.
///
/// The transport tells it when the write was sent and when it was settled. One that is dropped in between
/// may still be executed, and whoever counts it takes that into account.
#[derive(Debug)]
pub struct LetOut {
    limit: Option<Duration>,
    flight: Option<Flight>,
}

impl LetOut {
    /// Has to end within `limit`, if there is one; nobody counts it.
    pub fn within(limit: Option<Duration>) -> Self {
        Self { limit, flight: None }
    }

    /// The same, counted by `flight`.
    pub(crate) fn counted(limit: Option<Duration>, flight: Flight) -> Self {
        Self { limit, flight: Some(flight) }
    }

    /// How long it may take from now on; `None`: no limit of the gate's.
    pub fn limit(&self) -> Option<Duration> {
        self.limit
    }

    /// It is sent from now on, and the server works on it until `until` at the latest.
    pub(crate) fn sent(&mut self, until: Instant) {
        if let Some(flight) = &mut self.flight {
            flight.until = Some(until);
        }
    }

    /// The server does not work on it: it has answered, or nothing was sent.
    pub(crate) fn settled(mut self) {
        if let Some(flight) = &mut self.flight {
            flight.until = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MARGIN: Duration = Duration::from_secs(2);

    fn flights() -> (Flights, Clock) {
        let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
        (Flights::new(clock.clone(), MARGIN), clock)
    }

    fn sent(flights: &Flights, until: Instant) -> LetOut {
        let mut out = LetOut::counted(None, flights.begin());
        out.sent(until);
        out
    }

    #[tokio::test(start_paused = true)]
    async fn l8_what_was_answered_or_never_sent_is_waited_for_by_nobody() {
        let (flights, clock) = flights();
        drop(LetOut::counted(None, flights.begin()));
        sent(&flights, clock.after(10 * SECOND)).settled();
        assert!(flights.idle(Duration::ZERO).await);
        assert_eq!(flights.doubts(), (0, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn l8_what_was_given_up_is_in_doubt_for_what_the_server_was_told_and_a_margin() {
        let (flights, clock) = flights();
        drop(sent(&flights, clock.after(10 * SECOND)));
        drop(sent(&flights, clock.after(3 * SECOND)));
        let began = clock.now();
        assert!(!flights.idle(11 * SECOND).await);
        assert_eq!(clock.now(), began, "what takes longer is not waited for");
        assert_eq!(flights.doubts(), (0, 12 * SECOND), "the longest counts");
        assert!(flights.idle(12 * SECOND).await);
        assert_eq!(clock.now() - began, 12 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn l8_an_answer_that_comes_while_somebody_waits_ends_the_wait() {
        let (flights, clock) = flights();
        let out = sent(&flights, clock.after(10 * SECOND));
        let began = clock.now();
        let answer = async {
            clock.sleep(SECOND).await;
            out.settled();
        };
        let (is_idle, ()) = tokio::join!(flights.idle(2 * SECOND), answer);
        assert!(is_idle);
        assert_eq!(clock.now() - began, SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn l8_a_write_that_is_still_awaited_is_waited_for_so_long_and_no_longer() {
        let (flights, clock) = flights();
        let _out = sent(&flights, clock.after(10 * SECOND));
        let began = clock.now();
        assert!(!flights.idle(2 * SECOND).await);
        assert_eq!(clock.now() - began, 2 * SECOND);
    }
}
