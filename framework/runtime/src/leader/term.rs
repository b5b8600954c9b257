//! A term of leadership: renewed in the background, from the won lease to its release.
//!
//! When a term ends, another process may lead. So the term's gate closes before any listener is
//! notified of the end, and the lease is given back only when all work has ended and no write that
//! was made under the lease can still be executed. Not included: winning a term, which is the
//! campaign's part.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};

use super::decision::{Handover, Reaction};
use super::gate::{CloseOnDrop, LeaseGate};
use super::lock::{LockWatch, ObservedRecord};
use super::shared::{ElectionShared, Leadership};
use windlass_core::clock::ClockReading;
use windlass_core::metrics::names;

/// Leadership, from beginning to end. A term renews itself in the background; dropping the term
/// stops that: the gate closes, and the lease is left to expire, as after a crash.
///
/// Made by [`Elector::campaign`](super::Elector::campaign), which has an example. At most one term
/// of an elector and all clones exists at a time.
#[derive(Debug)]
pub struct Term {
    /// The renewals; returns the machine for the release.
    task: AbortOnDropHandle<Handover>,
    /// Ends the renewals without a loss.
    finish: CancellationToken,
    /// Cancelled when another process asks for the lease.
    handover_requested: CancellationToken,
    /// Closes the gate, however the term ends.
    guard: TermGuard,
    /// Dropped last: only then may the next campaign begin.
    _permit: OwnedSemaphorePermit,
}

/// Ends a term, however the end comes: no write is permitted any more, and the workers are
/// notified.
#[derive(Debug)]
struct TermGuard {
    /// Gate of this term's writes.
    gate: LeaseGate,
    /// Cancelled when the term is over.
    lost: CancellationToken,
    /// State of the elector.
    shared: Arc<ElectionShared>,
}

impl Drop for TermGuard {
    fn drop(&mut self) {
        // Closed before the notification: a worker that is notified must find the gate closed.
        self.gate.close();
        self.lost.cancel();
        let shared = &self.shared;
        *shared.gate.lock() = None;
        shared.environment.metrics.set(&names::LEADER, &[&shared.settings.name], 0.0);
        // Only the status that this term set is replaced.
        shared.status.send_if_modified(|status| {
            let is_leading = *status == Leadership::Leading;
            if is_leading {
                *status = Leadership::Candidate { holder: None };
            }
            is_leading
        });
    }
}

impl Term {
    /// Starts the term of a lease that `handover` holds since a request that was about to be sent
    /// at `sent`.
    pub(super) fn begin(
        shared: &Arc<ElectionShared>,
        (handover, sent): (Handover, ClockReading),
        lock_watch: LockWatch,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let shared = Arc::clone(shared);
        let settings = &shared.settings;
        let gate = LeaseGate::new(
            shared.lock.describe(),
            shared.environment.clock.clone(),
            settings.timing,
            sent,
            shared.in_flight_writes.clone(),
        );
        shared.environment.metrics.set(&names::LEADER, &[&settings.name], 1.0);
        info!(lease = %shared.lock.describe(), identity = %shared.lock.identity(), "leading");
        *shared.gate.lock() = Some(gate.clone());
        shared.status.send_replace(Leadership::Leading);
        let [lost, finish, handover_requested] = std::array::from_fn(|_| CancellationToken::new());
        let task = AbortOnDropHandle::new(tokio::spawn({
            let mut renew_loop = RenewLoop {
                shared: shared.clone(),
                handover,
                lock_watch,
                finish: finish.clone(),
                handover_requested: handover_requested.clone(),
            };
            let lost = lost.clone();
            // Inside the task, so that a panic of the renewal closes the gate, too.
            let close_on_drop = CloseOnDrop { gate: gate.clone(), notify: move || lost.cancel() };
            async move {
                renew_loop.run(&close_on_drop.gate).await;
                // Dropped before the task returns: `Term::end` finds the gate closed.
                drop(close_on_drop);
                renew_loop.handover
            }
        }));
        // In a separate task: a slow event must not delay the first renewal.
        tokio::spawn({
            let shared = shared.clone();
            async move { shared.event("became leader").await }
        });
        Self {
            task,
            finish,
            handover_requested,
            guard: TermGuard { gate, lost, shared },
            _permit: permit,
        }
    }

    /// Returns the gate that writes of this term ask first.
    ///
    /// Pass the gate to [`Client::gated`](windlass_client::client::Client::gated). The gate
    /// outlives the term and then refuses every write.
    pub fn gate(&self) -> LeaseGate {
        self.guard.gate.clone()
    }

    /// Returns the token that is cancelled when leadership is lost: stop working at once.
    ///
    /// Cancelled after the gate was closed, so a worker that sees the cancellation can write
    /// nothing any more.
    pub fn lost(&self) -> CancellationToken {
        self.guard.lost.clone()
    }

    /// Returns the token that is cancelled when another process [asked](super::LeaderElection::ask)
    /// for the lease and this process [lends](super::LeaderElection::lend) the lease: end the work
    /// as at a clean stop, then the term, and campaign again.
    pub fn handover_requested(&self) -> CancellationToken {
        self.handover_requested.clone()
    }

    /// Ends the term. With `all_ended` (no work of this term runs any more) the Lease is given
    /// back, so that another replica leads within seconds; otherwise the Lease is left to expire.
    ///
    /// The Lease is left to expire, too, when the server may still execute a write of this process
    /// in 2 s: a write that was sent and then given up by the caller, lost with the connection, or
    /// not answered in time. The same holds when the term was lost before, or the settings say so.
    ///
    /// # Cancel safety
    /// Dropping the future closes the gate and ends the renewals all the same; the Lease may be
    /// left to expire.
    pub async fn end(self, all_ended: bool) {
        let Self { task, finish, handover_requested: _, guard, _permit } = self;
        let was_lost = guard.lost.is_cancelled();
        // The task is awaited, not aborted: a renewal after the release would take the lease back.
        finish.cancel();
        let handover = task.await;
        let shared = Arc::clone(&guard.shared);
        // Closes the gate before the release: a write that is let out later would run without the
        // lease.
        drop(guard);
        let lease = shared.lock.describe();
        let giving_back = async {
            match handover {
                Ok(_) if was_lost => {}
                Ok(_) if !shared.settings.release => {}
                Ok(mut handover) if all_ended => shared.release_when_idle(&mut handover).await,
                Ok(_) => warn!(%lease, "work was cut short; the lease is left to expire"),
                Err(error) => {
                    warn!(%lease, %error, "the election's task failed; the lease expires")
                }
            }
        };
        tokio::join!(giving_back, shared.event("stopped leading"));
    }
}

/// State of the task that renews the lease of a term.
struct RenewLoop {
    /// State of the elector.
    shared: Arc<ElectionShared>,
    /// The protocol's state.
    handover: Handover,
    /// Reports of changes of the lock.
    lock_watch: LockWatch,
    finish: CancellationToken,
    handover_requested: CancellationToken,
}

impl RenewLoop {
    /// Renews until leadership is lost or `finish`.
    async fn run(&mut self, gate: &LeaseGate) {
        let clock = self.shared.environment.clock.clone();
        loop {
            // Ends no later than the lease, so that the end is noticed on time.
            let left = self.handover.machine.time_left(&clock.reading()).unwrap_or_default();
            let until = clock.after(self.shared.pause().min(left));
            tokio::select! {
                biased;
                () = self.finish.cancelled() => return,
                reported = next_change(&self.handover, &mut self.lock_watch) => {
                    if let Some(over) = reported {
                        self.handover.machine.overtaken(&over);
                    }
                }
                () = clock.sleep_until(until) => {}
            }
            let is_held = self.handover.machine.held().is_some();
            if is_held && !self.handover.machine.expire(&clock.reading()) {
                let left = self.handover.machine.time_left(&clock.reading()).unwrap_or_default();
                tokio::select! {
                    biased;
                    () = self.finish.cancelled() => return,
                    // The attempt is cut at the end of validity: the term must not outlive the
                    // validity in a slow request.
                    _ = clock.timeout(left, self.shared.attempt(&mut self.handover)) => {}
                }
                self.handover.machine.expire(&clock.reading());
            }
            match (self.handover.machine.held(), self.handover.machine.take_loss()) {
                (Some(sent), _) => gate.renewed(sent),
                (None, loss) => {
                    // Closed before the report of the loss.
                    gate.close();
                    self.shared.report_loss(loss);
                    return;
                }
            }
            if self.handover.is_asked() && !self.handover_requested.is_cancelled() {
                info!(lease = %self.shared.lock.describe(), "another process asks for the lease");
                self.handover_requested.cancel();
            }
        }
    }
}

/// Waits for a report that a leader must react to; returns the record when another process holds
/// the lock, and `None` when the lock is to be read.
async fn next_change(handover: &Handover, lock_watch: &mut LockWatch) -> Option<ObservedRecord> {
    loop {
        let reported = lock_watch.next().await;
        match handover.reaction(&reported) {
            Reaction::Nothing | Reaction::Renewed => {}
            Reaction::Read => return None,
            Reaction::Overtaken => return Some(reported),
        }
    }
}
