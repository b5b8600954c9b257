//! State of an election that its elector and its terms share, and the requests to the lock.

// DESIGN.md, 54: A Lease is released only after all writes sent under it have ended

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::decision::{Handover, LockRequest, LockResponse, LossReason, Machine, OwnRecords};
use super::durations::JITTER;
use super::gate::LeaseGate;
use super::lock::{LockAccess, LockWatch, ResourceLock};
use super::settings::LeaderElection;
use windlass_client::client::InFlightWrites;
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names;

/// Longest time by which the release of the Lease, or an event about it, may delay a shutdown.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that the release of the Lease waits for writes that were sent. Every write that gets an
/// answer has the answer by then; a write without one stays uncertain for longer than the lease
/// lasts in most cases, so waiting for it would gain nothing over letting the lease expire.
pub const WRITE_DRAIN: Duration = Duration::from_secs(2);

/// Upper bound of the delay of an attempt that a change of the lock causes: candidates spread out,
/// and a lock that changes all the time costs no more than some requests a second.
const MAX_ATTEMPT_DELAY: Duration = Duration::from_millis(200);

/// State of an election, as known to this process.
///
/// Published by a watch channel, so a reader that is slow sees the newest state and not every state
/// in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Waiting for the Lease; with the holder, if known.
    Candidate {
        /// Identity of the holder.
        holder: Option<String>,
    },
    /// This process created the lock, holds it, and does not lead yet: the lock may have been
    /// deleted while a holder hangs, so no write is permitted for a lease duration.
    Holding,
    /// This process leads.
    Leading,
    /// The election is over for this process.
    Ended,
}

/// State that all clones of an [`Elector`](super::Elector) and all terms share.
#[derive(Debug)]
pub(super) struct ElectionShared {
    /// Names and durations, checked.
    pub(super) settings: LeaderElection,
    // Shared with the machine of every campaign: a record that an earlier campaign sent may be the
    // stored record.
    pub(super) own_records: OwnRecords,
    /// The gate of the running term.
    pub(super) gate: Mutex<Option<LeaseGate>>,
    /// Writes that the gates of all terms let out.
    pub(super) in_flight_writes: InFlightWrites,
    /// At most one campaign or term at a time: a second campaign would take the first one's record
    /// for its own.
    pub(super) permits: Arc<Semaphore>,
    /// Store of the record.
    pub(super) lock: Arc<dyn ResourceLock>,
    /// Clock, randomness and metrics.
    pub(super) environment: Environment,
    /// The published state.
    pub(super) status: watch::Sender<Leadership>,
    /// Whether the lock answers, for readiness.
    pub(super) access: LockAccess,
    /// While this process holds a lock that it created: the time at which leadership begins.
    pub(super) leads_at: Mutex<Option<Instant>>,
}

impl ElectionShared {
    /// Waits until the lock reports a free Lease, and for a random delay, so that candidates spread
    /// out.
    pub(super) async fn wait_until_free(&self, machine: &Machine, lock_watch: &mut LockWatch) {
        // A change that leaves the lock held (a renewal by the holder) must not cause a request.
        while !machine.is_worth_attempt(&lock_watch.next().await) {}
        let delay = (MAX_ATTEMPT_DELAY / 2).mul_f64(1.0 + self.environment.rng.unit());
        self.environment.clock.sleep(delay).await;
    }

    /// Makes an attempt; returns false when `stop` came first. A lease that the attempt won, or may
    /// have won, is then given back.
    pub(super) async fn attempt_until(
        &self,
        handover: &mut Handover,
        stop: &CancellationToken,
    ) -> bool {
        let clock = &self.environment.clock;
        let ended = {
            let mut attempt = std::pin::pin!(self.attempt(handover));
            // The attempt goes first: an attempt that has just ended counts, also when `stop` came
            // with it. On `stop` a running attempt is awaited, not dropped: its write may already
            // be stored.
            tokio::select! {
                biased;
                () = &mut attempt => return true,
                () = stop.cancelled() => clock.timeout(RELEASE_TIMEOUT, attempt).await.is_some(),
            }
        };
        // The attempt was cut: the stored record may be unknown to the machine.
        if !ended {
            handover.machine.mark_stale();
        }
        if self.settings.release && (handover.machine.held().is_some() || !ended) {
            self.release_when_idle(handover).await;
        }
        false
    }

    /// Takes a request for the lease back, if there was one.
    pub(super) async fn withdraw(&self, handover: &mut Handover) {
        let clock = &self.environment.clock;
        let asks = async {
            // Read and replace, and once more if the first record was stale, as in `release`.
            for _ in 0..4 {
                let Some(request) = handover.withdraw() else { return };
                let answer = self.send(&request).await;
                if handover.machine.released(&request, answer, &clock.reading()) {
                    return;
                }
            }
        };
        clock.timeout(RELEASE_TIMEOUT, asks).await;
    }

    /// Makes an attempt to acquire or renew.
    pub(super) async fn attempt(&self, handover: &mut Handover) {
        let clock = &self.environment.clock;
        let mut request = handover.attempt(&clock.reading(), clock.wall());
        loop {
            if request == LockRequest::Read && handover.machine.held().is_some() {
                self.environment.metrics.count(&names::LEADER_SLOWPATH, &[&self.settings.name], 1);
            }
            // Read before the request leaves: validity counts from here, however slow the answer
            // is.
            let sent = clock.reading();
            let answer = self.send(&request).await;
            let was_answered = !matches!(answer, LockResponse::Failed);
            let next = handover.answered(&request, answer, &sent, &clock.reading(), clock.wall());
            match next {
                Some(next) => request = next,
                None => {
                    if was_answered {
                        self.access.answered();
                    }
                    return;
                }
            }
        }
    }

    /// Sends one request to the lock and classifies its outcome.
    async fn send(&self, request: &LockRequest) -> LockResponse {
        let exchange = async {
            match request {
                LockRequest::Read => self.lock.get().await,
                LockRequest::Create(record) => self.lock.create(record.clone()).await.map(Some),
                LockRequest::Replace { version, record } => {
                    self.lock.update(version, record.clone()).await.map(Some)
                }
            }
        };
        let limit = self.settings.timing.request_limit();
        match self.environment.clock.timeout(limit, exchange).await {
            Some(Ok(Some(seen))) => LockResponse::Lease(seen),
            Some(Ok(None)) => LockResponse::Missing,
            Some(Err(error)) => match error.kind() {
                ErrorKind::Conflict | ErrorKind::AlreadyExists => LockResponse::Conflict,
                // For a creation, `NotFound` means that there is no such namespace.
                ErrorKind::NotFound if matches!(request, LockRequest::Replace { .. }) => {
                    LockResponse::Conflict
                }
                // A refusal after an attempt of ours that may have worked: the next read of the
                // record decides.
                _ if *request != LockRequest::Read && error.code() == Some(409) => {
                    LockResponse::Conflict
                }
                _ if matches!(request, LockRequest::Replace { .. })
                    && error.code() == Some(404) =>
                {
                    LockResponse::Conflict
                }
                _ => {
                    warn!(lease = %self.lock.describe(), error = ?error, "an election request failed");
                    self.access.failed(&error);
                    LockResponse::Failed
                }
            },
            None => {
                warn!(lease = %self.lock.describe(), ?limit, "an election request was not answered");
                let text = format!("{} does not answer within {limit:?}", self.lock.describe());
                self.access.failed(&Error::new(ErrorKind::Timeout, text));
                LockResponse::Failed
            }
        }
    }

    /// Gives the Lease back once no write that was made under the Lease can be executed any more;
    /// leaves the Lease to expire when that takes too long.
    pub(super) async fn release_when_idle(&self, handover: &mut Handover) {
        let lease = self.lock.describe();
        if !self.in_flight_writes.idle(WRITE_DRAIN).await {
            let (unanswered, at_most) = self.in_flight_writes.outstanding();
            let what = "a write may still be executed; the lease is left to expire";
            warn!(%lease, unanswered, ?at_most, "{what}");
            return;
        }
        let release = self.release(handover);
        if self.environment.clock.timeout(RELEASE_TIMEOUT, release).await.is_none() {
            warn!(%lease, "the lease could not be given back in time; it expires");
        }
    }

    /// Reads the lock if needed, and writes the released record.
    async fn release(&self, handover: &mut Handover) {
        let clock = &self.environment.clock;
        // Read and replace, and once more if the first record was stale.
        for _ in 0..4 {
            let Some(request) = handover.release(clock.wall()) else { return };
            let answer = self.send(&request).await;
            if handover.machine.released(&request, answer, &clock.reading()) {
                info!(lease = %self.lock.describe(), "the lease was given back");
                return;
            }
        }
    }

    /// Returns the time until the next attempt.
    pub(super) fn pause(&self) -> Duration {
        let stretch = 1.0 + (JITTER - 1.0) * self.environment.rng.unit();
        self.settings.timing.retry_period.mul_f64(stretch)
    }

    /// Publishes the holder that a candidate sees, once per change; `wait` is the time left until
    /// this process leads by a lock created by this process.
    pub(super) fn publish(self: &Arc<Self>, machine: &Machine, wait: Option<Duration>) {
        *self.leads_at.lock() = wait.map(|wait| self.environment.clock.after(wait));
        if let Some(wait) = wait {
            return self.publish_wait(wait);
        }
        let holder = machine.holder().map(str::to_owned);
        let now = Leadership::Candidate { holder };
        self.status.send_if_modified(|before| {
            let changed = *before != now;
            if changed {
                if let Leadership::Candidate { holder: Some(holder) } = &now {
                    info!(lease = %self.lock.describe(), leader = %holder, "another replica leads");
                }
                *before = now;
            }
            changed
        });
    }

    /// Publishes, once, that this process waits for a lease duration before it leads.
    fn publish_wait(self: &Arc<Self>, wait: Duration) {
        if self.status.send_replace(Leadership::Holding) == Leadership::Holding {
            return;
        }
        let seconds = wait.as_secs_f64().ceil();
        let why = "created the lock and becomes leader when the wait is over: a previous holder of a deleted lock \
                   may still write until then";
        info!(lease = %self.lock.describe(), identity = %self.lock.identity(), ?wait, "{why}");
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            shared.event(&format!("created the lock and becomes leader in {seconds} s")).await;
        });
    }

    /// Ends a campaign that won no term: logs a wait that was not over.
    pub(super) fn end_campaign(&self, machine: &Machine) {
        *self.leads_at.lock() = None;
        if machine.wait_left(&self.environment.clock.reading()).is_some() {
            let why = "stopped before it led; the lock that it made is left to expire";
            info!(lease = %self.lock.describe(), "{why}");
        }
    }

    /// Reports the loss of the lease: to the log, the metric and the watchers.
    pub(super) fn report_loss(&self, loss: Option<LossReason>) {
        let lease = self.lock.describe();
        match loss {
            Some(LossReason::Taken(holder)) if holder == self.lock.identity() => {
                let why = "the lease has this replica's name and another time of acquisition: \
                           another process with this name took the lease, or the times were edited";
                warn!(%lease, leader = %holder, "{why}")
            }
            Some(LossReason::Taken(holder)) => {
                warn!(%lease, leader = %holder, "another replica took the lease")
            }
            _ => warn!(%lease, "the lease could not be renewed in time"),
        }
        self.environment.metrics.set(&names::LEADER, &[&self.settings.name], 0.0);
        self.status.send_replace(Leadership::Candidate { holder: None });
    }

    /// Records an event about this process on the lock, for at most [`RELEASE_TIMEOUT`].
    pub(super) async fn event(&self, what: &str) {
        let note = format!("{} {what}", self.lock.identity());
        match self.environment.clock.timeout(RELEASE_TIMEOUT, self.lock.record_event(note)).await {
            Some(Err(error)) => debug!(error = ?error, "could not record an election event"),
            None => debug!("recording an election event took too long"),
            Some(Ok(())) => {}
        }
    }
}
