//! An election with callbacks, as client-go's `LeaderElector.Run` has them, for programs without a
//! manager.
//!
//! A panic of a callback is caught: the lease of a process whose callback panicked is given back as
//! after an ordinary end.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use super::elector::Elector;
use super::gate::LeaseGate;
use super::settings::LOST;
use super::shared::Leadership;
use super::term::Term;

/// Future of the leader's work.
type LeadingFuture = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Maker of the leader's work.
type StartedCallback = Box<dyn FnOnce(LeaseGate, CancellationToken) -> LeadingFuture + Send>;
/// Callback at the end.
type StoppedCallback = Box<dyn FnOnce() + Send>;
/// Callback about each new leader, with the identity.
type NewLeader = Box<dyn FnMut(&str) + Send>;

/// Time that work may go on between cancellation and drop.
const DRAIN: Duration = Duration::from_secs(25);

/// Callbacks of an election.
///
/// client-go's `LeaderCallbacks`: `OnStartedLeading`, `OnStoppedLeading` and `OnNewLeader`.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::client::Client;
/// # async fn example(client: Client) -> Result<(), windlass::Error> {
/// use tokio_util::sync::CancellationToken;
/// use windlass::leader::{Elector, LeaderCallbacks, LeaderElection, ElectionOutcome};
///
/// let elector = Elector::new(LeaderElection::new("nightly-report"), &client)?;
/// let callbacks = LeaderCallbacks::new(
///     |_gate, stop| async move { stop.cancelled().await },
///     || println!("does not lead any more"),
/// )
/// .new_leader(|identity| println!("{identity} leads"));
/// let outcome = elector.run(callbacks, &CancellationToken::new()).await;
/// assert_ne!(outcome, ElectionOutcome::Failed);
/// # Ok(())
/// # }
/// ```
pub struct LeaderCallbacks {
    /// Called once, when this process leads.
    started: StartedCallback,
    /// Called once, at the end of the run.
    stopped: StoppedCallback,
    /// Called at each change of leader.
    new_leader: Option<NewLeader>,
    /// Time for the work to end.
    drain: Duration,
}

/// Reason for which [`Elector::run`] returned.
///
/// After [`Stopped`](Self::Stopped), [`Finished`](Self::Finished), [`Failed`](Self::Failed) and
/// [`Lent`](Self::Lent) others can take the lock at once; after [`CutShort`](Self::CutShort) they
/// wait for the lease duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionOutcome {
    /// The election was stopped before this process led.
    NeverLed,
    /// The election was stopped while this process led, and all work ended in time.
    Stopped,
    /// The election was stopped while this process led, and work that did not end was dropped; the
    /// lease expires.
    CutShort,
    /// The work ended normally; the lease was given back.
    Finished,
    /// The work panicked; the lease was given back.
    Failed,
    /// Another process asked for the lease, and this process lends it: the work ended and the lock
    /// was given back.
    Lent,
    /// Leadership was lost.
    Lost,
}

impl LeaderCallbacks {
    /// Creates callbacks from the two that every election has.
    ///
    /// `started` is the work of a leader: its arguments are the gate that the writes of the client
    /// must pass ([`Client::gated`](windlass_client::client::Client::gated)) and a token that is
    /// cancelled when the work has to end. `stopped` is called at the end in every case, even when
    /// this process never led.
    pub fn new<W>(
        started: impl FnOnce(LeaseGate, CancellationToken) -> W + Send + 'static,
        stopped: impl FnOnce() + Send + 'static,
    ) -> Self
    where
        W: Future<Output = ()> + Send + 'static,
    {
        Self {
            started: Box::new(|gate, stop| Box::pin(started(gate, stop))),
            stopped: Box::new(stopped),
            new_leader: None,
            drain: DRAIN,
        }
    }

    /// Sets a callback for every change of leader that this process sees, this process included;
    /// called once for each change.
    ///
    /// The argument is the leader's identity. The callback must not block; after a panic the
    /// callback is not called again.
    #[must_use]
    pub fn new_leader(mut self, call: impl FnMut(&str) + Send + 'static) -> Self {
        self.new_leader = Some(Box::new(call));
        self
    }

    /// Sets the time that the work may take to end before being dropped; default 25 s. After a loss
    /// of leadership the limit is 2 s at most, because another replica works soon.
    #[must_use]
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }
}

impl fmt::Debug for LeaderCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderCallbacks").field("drain", &self.drain).finish_non_exhaustive()
    }
}

/// Calls the callback about new leaders, once for each leader.
struct LeaderNotifier {
    /// The callback; taken out while running, and for good by a panic.
    call: Option<NewLeader>,
    /// State of the election.
    status: watch::Receiver<Leadership>,
    /// Identity of this process.
    own: String,
    /// Leader of the last call.
    notified: Option<String>,
}

impl LeaderNotifier {
    /// Calls the callback if the present leader has not been reported yet.
    fn notify(&mut self) {
        let leader = match &*self.status.borrow_and_update() {
            Leadership::Leading => self.own.clone(),
            Leadership::Candidate { holder: Some(holder) } => holder.clone(),
            _ => return,
        };
        if self.notified.as_ref() == Some(&leader) {
            return;
        }
        if let Some(mut call) = self.call.take() {
            match catch_unwind(AssertUnwindSafe(|| call(&leader))) {
                Ok(()) => self.call = Some(call),
                Err(_) => error!("the callback about new leaders panicked; it is not called again"),
            }
        }
        self.notified = Some(leader);
    }

    /// Reports leaders for the life of the elector; ends when all clones are gone.
    async fn follow(&mut self) {
        loop {
            self.notify();
            if self.status.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

impl Elector {
    /// Campaigns once, does the work of a leader while leading, and returns when leadership ended.
    /// Call this function again to be a candidate again.
    ///
    /// The lock is given back only after the work has ended; see
    /// [`release_on_cancel`](super::LeaderElection::release_on_cancel). Callbacks that panic end
    /// the work, and nothing else.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and leaves the lease to expire, as a crash would;
    /// `stopped` is not called.
    pub async fn run(
        &self,
        callbacks: LeaderCallbacks,
        stop: &CancellationToken,
    ) -> ElectionOutcome {
        let LeaderCallbacks { started, stopped, new_leader, drain } = callbacks;
        let own = self.identity().to_owned();
        let mut notifier =
            LeaderNotifier { call: new_leader, status: self.watch(), own, notified: None };
        let term = tokio::select! {
            biased;
            term = self.campaign(stop) => term,
            () = notifier.follow() => None,
        };
        notifier.notify();
        let outcome = match term {
            None => ElectionOutcome::NeverLed,
            Some(term) => self.lead(term, started, drain, &mut notifier, stop).await,
        };
        notifier.notify();
        if catch_unwind(AssertUnwindSafe(stopped)).is_err() {
            error!("the callback about the end of leadership panicked");
        }
        outcome
    }

    /// Runs the work of a leader until the term must end; returns the reason.
    async fn lead(
        &self,
        term: Term,
        started: StartedCallback,
        drain: Duration,
        notifier: &mut LeaderNotifier,
        stop: &CancellationToken,
    ) -> ElectionOutcome {
        let (lost, requested) = (term.lost(), term.handover_requested());
        let (end, gate) = (CancellationToken::new(), term.gate());
        let mut work = AbortOnDropHandle::new(tokio::spawn({
            let end = end.clone();
            async move { started(gate, end).await }
        }));
        // `biased`: of several reasons that are ready the loss of the lease decides, because that
        // loss shortens the drain.
        let outcome = tokio::select! {
            biased;
            () = lost.cancelled() => ElectionOutcome::Lost,
            () = stop.cancelled() => ElectionOutcome::Stopped,
            () = requested.cancelled() => ElectionOutcome::Lent,
            ended = &mut work => {
                term.end(true).await;
                return ended.map_or_else(|panic| failed(&panic), |()| ElectionOutcome::Finished);
            }
            () = notifier.follow() => ElectionOutcome::Stopped,
        };
        end.cancel();
        let limit = if outcome == ElectionOutcome::Lost { drain.min(LOST) } else { drain };
        // After a loss the work has only `LOST`: another replica works soon.
        let ended = self.clock().timeout(limit, &mut work).await;
        // Aborts work that did not end in time, before the term ends.
        drop(work);
        term.end(ended.is_some()).await;
        match (outcome, ended) {
            (ElectionOutcome::Stopped | ElectionOutcome::Lent, None) => ElectionOutcome::CutShort,
            (ElectionOutcome::Stopped | ElectionOutcome::Lent, Some(Err(panic))) => failed(&panic),
            (outcome, _) => outcome,
        }
    }
}

/// Logs that the work panicked.
fn failed(panic: &JoinError) -> ElectionOutcome {
    error!(%panic, "the work of a leader failed");
    ElectionOutcome::Failed
}
