//! Attempt at a key: number, reasons, cancellation and write gate.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use foldhash::fast::FixedState;
use tokio_util::sync::CancellationToken;

use crate::controller::conditions::AttemptConditions;
use windlass_client::client::{Client, WriteGate, WritePermit};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ObjectKey;

/// The attempt is running.
const RUNNING: u8 = 0;
/// The attempt ended without a drop.
const ENDED: u8 = 1;
/// The attempt was dropped: at the deadline, at the end of the drain, or because the reconcile was
/// superseded.
const DROPPED: u8 = 2;

/// An attempt at a key.
#[derive(Clone, Debug)]
pub(crate) struct ReconcileAttempt {
    /// Number of the attempt: 0 unless the last attempt failed.
    pub(crate) number: u32,
    /// The reasons, as bits of the queue.
    pub(crate) reasons: u64,
    /// Cancelled when the controller stops, and when the attempt ended.
    pub(crate) cancel: AttemptCancel,
}

/// Cancellation of an attempt; the token is made at the first request, because few reconciles need
/// a token.
#[derive(Clone, Debug)]
pub(crate) struct AttemptCancel {
    shared: Arc<CancelShared>,
}

/// State shared by all clones of a [`AttemptCancel`].
#[derive(Debug)]
struct CancelShared {
    /// Cancellation of the whole controller run.
    parent: Arc<CancellationToken>,
    token: OnceLock<CancellationToken>,
    state: AtomicU8,
    /// Hash of the version that the attempt began with; 0 while there is none.
    start_version: AtomicU64,
    /// The generation that the attempt reconciles; 0 while there is none.
    generation: AtomicI64,
    /// The conditions that the attempt has set.
    collected: AttemptConditions,
    /// Whether the attempt's outcome is shown in the conditions of the object.
    is_shown: AtomicBool,
    /// Number of the attempt as an observed reconcile; 0 while it is not observed.
    observed: AtomicU64,
}

impl AttemptCancel {
    pub(crate) fn new(parent: &Arc<CancellationToken>) -> Self {
        let (parent, token) = (Arc::clone(parent), OnceLock::new());
        let shared = CancelShared {
            parent,
            token,
            state: AtomicU8::new(RUNNING),
            start_version: AtomicU64::new(0),
            generation: AtomicI64::new(0),
            collected: AttemptConditions::default(),
            is_shown: AtomicBool::new(false),
            observed: AtomicU64::new(0),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Notes the object's version and generation at the start of the attempt.
    pub(crate) fn set_start_version(&self, version: &str, generation: Option<i64>) {
        // Relaxed: written by the task of the attempt before the context exists.
        self.shared.start_version.store(number(version), Ordering::Relaxed);
        self.set_generation(generation);
    }

    /// Notes the generation of the object that is reconciled.
    pub(crate) fn set_generation(&self, generation: Option<i64>) {
        // As in `set_start_version`.
        self.shared.generation.store(generation.unwrap_or_default(), Ordering::Relaxed);
    }

    /// Takes the version, the generation and the conditions of another attempt, whose outcome this
    /// attempt reports.
    pub(crate) fn report_of(&self, other: &Self) {
        let (to, from) = (&self.shared, &other.shared);
        to.start_version.store(from.start_version.load(Ordering::Relaxed), Ordering::Relaxed);
        to.generation.store(from.generation.load(Ordering::Relaxed), Ordering::Relaxed);
        to.collected.take_from(&from.collected);
        to.observed.store(from.observed.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The generation that the attempt reconciles, if the object has a generation.
    pub(crate) fn generation(&self) -> Option<i64> {
        Some(self.shared.generation.load(Ordering::Relaxed)).filter(|generation| *generation != 0)
    }

    /// Notes the number as an observed reconcile.
    pub(crate) fn observe(&self, number: u64) {
        // Relaxed: read by the task that runs the attempt.
        self.shared.observed.store(number, Ordering::Relaxed);
    }

    /// The number as an observed reconcile; 0 if the attempt is not observed.
    pub(crate) fn observed(&self) -> u64 {
        self.shared.observed.load(Ordering::Relaxed)
    }

    /// Notes that the outcome is shown in the conditions of the object.
    pub(crate) fn shown(&self) {
        // Relaxed: read by the task that awaited the write.
        self.shared.is_shown.store(true, Ordering::Relaxed);
    }

    /// Whether the outcome is shown in the conditions of the object.
    pub(crate) fn is_shown(&self) -> bool {
        self.shared.is_shown.load(Ordering::Relaxed)
    }

    /// The conditions that the attempt has set.
    pub(crate) fn collected(&self) -> &AttemptConditions {
        &self.shared.collected
    }

    /// Whether the attempt began with this version.
    pub(crate) fn has_start_version(&self, version: &str) -> bool {
        self.shared.start_version.load(Ordering::Relaxed) == number(version)
    }

    /// Returns the token; already cancelled when the attempt has ended.
    pub(crate) fn token(&self) -> &CancellationToken {
        let token = self.shared.token.get_or_init(|| self.shared.parent.child_token());
        // The end of an attempt stores the state and then looks for a token; here the token is made
        // first and the state read afterwards. With `SeqCst` at least one side sees the other's
        // write.
        if self.shared.state.load(Ordering::SeqCst) != RUNNING {
            token.cancel();
        }
        token
    }

    /// Returns a client for code that may outlive the reconcile: once the attempt is dropped before
    /// the end, writes of all clones are refused.
    pub(crate) fn gated(&self, client: &Client, key: &ObjectKey) -> Client {
        let (attempt, outer) = (self.clone(), client.gate().cloned());
        client.gated(Arc::new(AttemptGate { attempt, key: key.clone(), outer }))
    }

    /// Returns a guard that ends the attempt on drop, and so cancels the attempt's token.
    pub(crate) fn end_guard(&self) -> AttemptEnd {
        AttemptEnd { shared: Arc::clone(&self.shared) }
    }
}

/// Returns a hash of a version, for comparison; never 0.
fn number(version: &str) -> u64 {
    FixedState::with_seed(0).hash_one(version).max(1)
}

/// Guard that ends an attempt on drop.
#[derive(Debug)]
pub(crate) struct AttemptEnd {
    shared: Arc<CancelShared>,
}

impl AttemptEnd {
    /// Marks the attempt as ended normally: clones of the client may go on writing.
    pub(crate) fn finished(self) {
        // Before the guard is dropped, whose exchange then fails: the gate stays open. The drop
        // then looks for a token, which needs `SeqCst`, see `AttemptCancel::token`.
        self.shared.state.store(ENDED, Ordering::SeqCst);
    }
}

impl Drop for AttemptEnd {
    fn drop(&mut self) {
        let (state, order) = (&self.shared.state, Ordering::SeqCst);
        // Fails when `finished` was called: then the gate stays open.
        let _ = state.compare_exchange(RUNNING, DROPPED, order, order);
        // After the state, see `AttemptCancel::token`.
        if let Some(token) = self.shared.token.get() {
            token.cancel();
        }
    }
}

/// Gate that refuses writes once the attempt was dropped, and otherwise asks the lease's gate.
#[derive(Debug)]
struct AttemptGate {
    attempt: AttemptCancel,
    key: ObjectKey,
    outer: Option<Arc<dyn WriteGate>>,
}

impl AttemptGate {
    /// Returns the lease's gate behind this one; an error once the attempt was dropped.
    fn outer(&self) -> Result<Option<&dyn WriteGate>, Error> {
        // A load just before the drop lets a write pass, as if the write had been sent earlier.
        if self.attempt.shared.state.load(Ordering::SeqCst) == DROPPED {
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

impl WriteGate for AttemptGate {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        self.outer()?.map_or(Ok(None), WriteGate::admit)
    }

    fn begin_write(&self) -> Result<WritePermit, Error> {
        self.outer()?.map_or_else(|| Ok(WritePermit::within(None)), WriteGate::begin_write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_client::client::InFlightWrites;
    use windlass_client::client::test_support::Counting;
    use windlass_core::clock::Clock;

    fn gate(attempt: &AttemptCancel) -> AttemptGate {
        AttemptGate {
            attempt: attempt.clone(),
            key: ObjectKey::new(Some("shop"), "home"),
            outer: None,
        }
    }

    #[test]
    fn k5_a_gate_shuts_when_its_attempt_is_dropped_and_not_when_it_ends() {
        let (dropped, ended) =
            (AttemptCancel::new(&Arc::default()), AttemptCancel::new(&Arc::default()));
        let (first, second) = (gate(&dropped), gate(&ended));
        let (drops, ends) = (dropped.end_guard(), ended.end_guard());
        assert!(first.admit().is_ok() && first.begin_write().is_ok());
        drop(drops);
        ends.finished();
        let error = first.begin_write().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert!(error.to_string().contains("\"shop/home\""), "{error}");
        assert!(first.admit().is_err());
        assert!(second.admit().is_ok() && second.begin_write().is_ok());
        assert!(ended.token().is_cancelled(), "it ended all the same");
    }

    #[test]
    fn l8_a_write_of_a_handle_that_was_given_away_counts_for_the_lease() {
        let in_flight_writes = InFlightWrites::new(Clock::system(), Duration::ZERO);
        let outer: Arc<dyn WriteGate> = Arc::new(Counting(in_flight_writes.clone()));
        let attempt = AttemptCancel::new(&Arc::default());
        let gate = AttemptGate { outer: Some(outer), ..gate(&attempt) };
        let out = gate.begin_write().unwrap();
        assert_eq!(in_flight_writes.outstanding().0, 1);
        assert_eq!(out.limit(), gate.admit().unwrap());
    }

    #[test]
    fn a_report_has_version_and_generation_of_the_attempt_that_it_is_about() {
        let (attempt, report) =
            (AttemptCancel::new(&Arc::default()), AttemptCancel::new(&Arc::default()));
        attempt.set_start_version("7", Some(3));
        attempt.observe(5);
        report.report_of(&attempt);
        assert_eq!(report.observed(), 5);
        for one in [&attempt, &report] {
            assert_eq!(one.generation(), Some(3));
            assert!(one.has_start_version("7") && !one.has_start_version("8"));
        }
        attempt.set_generation(Some(4));
        assert_eq!((attempt.generation(), report.generation()), (Some(4), Some(3)));
        attempt.set_generation(None);
        assert_eq!(attempt.generation(), None, "kinds without a spec count none");
    }

    #[test]
    fn an_outcome_is_shown_once_that_was_noted() {
        let attempt = AttemptCancel::new(&Arc::default());
        assert!(!attempt.is_shown());
        attempt.shown();
        assert!(attempt.is_shown());
    }

    #[test]
    fn a_token_is_cancelled_by_the_end_of_the_attempt_and_by_the_parent() {
        let parent = Arc::new(CancellationToken::new());
        let (ended, stopped) = (AttemptCancel::new(&parent), AttemptCancel::new(&parent));
        let end = ended.end_guard();
        assert!(!ended.token().is_cancelled() && !stopped.token().is_cancelled());
        drop(end);
        assert!(ended.token().is_cancelled() && !stopped.token().is_cancelled());
        parent.cancel();
        assert!(stopped.token().is_cancelled());
    }

    #[test]
    fn a_token_asked_for_after_the_end_is_cancelled() {
        let cancel = AttemptCancel::new(&Arc::default());
        drop(cancel.end_guard());
        assert!(cancel.token().is_cancelled());
    }
}
