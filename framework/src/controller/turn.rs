//! One turn of a key: which attempt, and who calls it off.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, LetOut, WriteGate};
use crate::error::{Error, ErrorKind};
use crate::resource::ObjectKey;

/// The turn goes on.
const RUNNING: u8 = 0;
/// It came to its end by itself.
const ENDED: u8 = 1;
/// It was dropped before: at its deadline, at the end of the drain, or because it was superseded.
const DROPPED: u8 = 2;

/// One turn of a key.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Number of the attempt: 0 unless the last one failed.
    pub(super) attempt: u32,
    /// Why, as the queue keeps it.
    pub(super) reasons: u64,
    /// Cancelled when the controller stops, and when the turn ended.
    pub(super) cancel: Cancel,
}

/// A cancellation whose token is made by the first who asks for it, because few reconciles do.
#[derive(Clone, Debug)]
pub(super) struct Cancel {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Its cancellation is this one's, too.
    parent: Arc<CancellationToken>,
    token: OnceLock<CancellationToken>,
    state: AtomicU8,
    /// The version that the turn began with, as a number; 0 while there is none.
    begun: AtomicU64,
}

impl Cancel {
    pub(super) fn new(parent: &Arc<CancellationToken>) -> Self {
        let (parent, token) = (Arc::clone(parent), OnceLock::new());
        let (state, begun) = (AtomicU8::new(RUNNING), AtomicU64::new(0));
        Self { shared: Arc::new(Shared { parent, token, state, begun }) }
    }

    /// The turn begins with this version of its object.
    pub(super) fn begins_at(&self, version: &str) {
        self.shared.begun.store(number(version), Ordering::Relaxed);
    }

    /// The turn tells of that one, and began with what that began with.
    pub(super) fn begins_like(&self, other: &Self) {
        self.shared.begun.store(other.shared.begun.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Did it begin with this version?
    pub(super) fn began_at(&self, version: &str) -> bool {
        self.shared.begun.load(Ordering::Relaxed) == number(version)
    }

    /// The token; already cancelled when the turn has ended.
    pub(super) fn token(&self) -> &CancellationToken {
        let token = self.shared.token.get_or_init(|| self.shared.parent.child_token());
        // Whoever ends the turn sets the mark and looks for a token; here it is the other way
        // round, so one of the two sees the other.
        if self.shared.state.load(Ordering::SeqCst) != RUNNING {
            token.cancel();
        }
        token
    }

    /// The same connection for what a reconcile may give away: when the turn is dropped before its end,
    /// writes of all clones are refused.
    pub(super) fn gated(&self, client: &Client, key: &ObjectKey) -> Client {
        let (turn, outer) = (self.clone(), client.gate().cloned());
        client.gated(Arc::new(TurnGate { turn, key: key.clone(), outer }))
    }

    /// Ends the turn when it is dropped: whoever still holds the token learns that nobody waits.
    pub(super) fn at_end(&self) -> Ending {
        Ending { shared: Arc::clone(&self.shared) }
    }
}

/// A version, to be recognised.
fn number(version: &str) -> u64 {
    FixedState::with_seed(0).hash_one(version).max(1)
}

/// Ends a turn when it is dropped.
#[derive(Debug)]
pub(super) struct Ending {
    shared: Arc<Shared>,
}

impl Ending {
    /// The turn came to its end by itself. What it left behind may go on.
    pub(super) fn finished(self) {
        self.shared.state.store(ENDED, Ordering::SeqCst);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let (state, order) = (&self.shared.state, Ordering::SeqCst);
        // Fails when the turn has ended by itself.
        let _ = state.compare_exchange(RUNNING, DROPPED, order, order);
        if let Some(token) = self.shared.token.get() {
            token.cancel();
        }
    }
}

/// Refuses writes once the turn was dropped; asks the lease before that.
#[derive(Debug)]
struct TurnGate {
    turn: Cancel,
    key: ObjectKey,
    outer: Option<Arc<dyn WriteGate>>,
}

impl TurnGate {
    /// The gate behind this one, while this one is open.
    fn outer(&self) -> Result<Option<&dyn WriteGate>, Error> {
        if self.turn.shared.state.load(Ordering::SeqCst) == DROPPED {
            let text = format!(
                "refused to write for the reconcile of \"{}\": it was dropped; the next one repeats \
                 the work",
                self.key
            );
            return Err(Error::new(ErrorKind::Cancelled, text));
        }
        Ok(self.outer.as_deref())
    }
}

impl WriteGate for TurnGate {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        self.outer()?.map_or(Ok(None), WriteGate::admit)
    }

    fn let_out(&self) -> Result<LetOut, Error> {
        self.outer()?.map_or_else(|| Ok(LetOut::within(None)), WriteGate::let_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Flights;
    use crate::client::tests::flights::Counting;
    use crate::clock::Clock;

    fn gate(turn: &Cancel) -> TurnGate {
        TurnGate { turn: turn.clone(), key: ObjectKey::new(Some("shop"), "home"), outer: None }
    }

    #[test]
    fn k5_a_gate_shuts_when_its_turn_is_dropped_and_not_when_it_ends() {
        let (dropped, ended) = (Cancel::new(&Arc::default()), Cancel::new(&Arc::default()));
        let (first, second) = (gate(&dropped), gate(&ended));
        let (drops, ends) = (dropped.at_end(), ended.at_end());
        assert!(first.admit().is_ok() && first.let_out().is_ok());
        drop(drops);
        ends.finished();
        let error = first.let_out().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.to_string().contains("\"shop/home\""), "{error}");
        assert!(first.admit().is_err());
        assert!(second.admit().is_ok() && second.let_out().is_ok());
        assert!(ended.token().is_cancelled(), "it ended all the same");
    }

    #[test]
    fn l8_a_write_of_a_handle_that_was_given_away_counts_for_the_lease() {
        let flights = Flights::new(Clock::system(), Duration::ZERO);
        let outer: Arc<dyn WriteGate> = Arc::new(Counting(flights.clone()));
        let turn = Cancel::new(&Arc::default());
        let gate = TurnGate { outer: Some(outer), ..gate(&turn) };
        let out = gate.let_out().unwrap();
        assert_eq!(flights.doubts().0, 1);
        assert_eq!(out.limit(), gate.admit().unwrap());
    }

    #[test]
    fn a_token_is_cancelled_by_the_end_of_the_turn_and_by_the_parent() {
        let parent = Arc::new(CancellationToken::new());
        let (ended, stopped) = (Cancel::new(&parent), Cancel::new(&parent));
        let end = ended.at_end();
        assert!(!ended.token().is_cancelled() && !stopped.token().is_cancelled());
        drop(end);
        assert!(ended.token().is_cancelled() && !stopped.token().is_cancelled());
        parent.cancel();
        assert!(stopped.token().is_cancelled());
    }

    #[test]
    fn a_token_asked_for_after_the_end_is_cancelled() {
        let cancel = Cancel::new(&Arc::default());
        drop(cancel.at_end());
        assert!(cancel.token().is_cancelled());
    }
}
