//! The election against a store: campaigns, renewals while a term lasts, release.

// DESIGN.md, 35: All clones of an `Elector` share one campaign permit

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::decision::{Handover, Machine, OwnRecords};
use super::gate::LeaseGate;
use super::lock::{LockAccess, LockWatch, ResourceLock};
use super::settings::LeaderElection;
use super::shared::{ElectionShared, Leadership};
use super::term::Term;
use windlass_client::client::{Client, InFlightWrites};
use windlass_core::clock::{Clock, ClockReading};
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names;

/// Time added to a wait before the attempt that detects the end of the wait: a timer may fire early
/// by the timer's granularity.
const TIMER_GRAIN: Duration = Duration::from_millis(2);

/// Campaigns for a Lease. Cheap to clone; all clones together run a single campaign or term at a
/// time.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::client::Client;
/// # async fn work(_: &Client) {}
/// # async fn example(client: Client) -> Result<(), windlass::Error> {
/// use std::sync::Arc;
/// use tokio_util::sync::CancellationToken;
/// use windlass::leader::{Elector, LeaderElection};
///
/// let elector = Elector::new(LeaderElection::new("nightly-report"), &client)?;
/// let stop = CancellationToken::new();
/// while let Some(term) = elector.campaign(&stop).await {
///     // Writes by this client are refused once the lease is over.
///     let leading = client.gated(Arc::new(term.gate()));
///     let lost = term.lost();
///     let has_ended = tokio::select! {
///         biased;
///         () = lost.cancelled() => true, // the work was dropped
///         () = work(&leading) => true,
///     };
///     term.end(has_ended).await;
/// }
/// # Ok(())
/// # }
/// ```
///
/// A [`Manager`](crate::manager::Manager) campaigns by itself, and [`run`](Self::run) with
/// callbacks.
#[derive(Clone, Debug)]
pub struct Elector {
    shared: Arc<ElectionShared>,
}

impl Elector {
    /// Creates an election by a Lease on the API server of `client` (which must not be gated by
    /// this election).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the durations are not safe together, or no object can have the
    /// name.
    pub fn new(settings: LeaderElection, client: &Client) -> Result<Self, Error> {
        settings.check()?;
        let environment = client.environment().fork("leader");
        let identity = settings.identity_or_own(&environment.rng);
        let namespace = settings
            .namespace
            .clone()
            .or_else(|| std::env::var("POD_NAMESPACE").ok().filter(|value| !value.is_empty()))
            .unwrap_or_else(|| client.default_namespace().to_owned());
        // A renewal that queues behind the requests of reconcilers comes too late; the election has
        // intervals of its own.
        let lock = settings.lock.lock(&client.urgent(), &namespace, &settings.name, &identity);
        let now = environment.clock.reading();
        let unheld_since =
            client.new_server().and_then(|new| new.claim(&namespace, &settings.name, now));
        let elector = Self::over(settings, lock, environment)?;
        unheld_since.into_iter().for_each(|since| elector.set_unheld_since(since));
        Ok(elector)
    }

    /// Notes that no other process held the lock at `at`: a process that creates the lock within a
    /// lease duration need not wait.
    pub(crate) fn set_unheld_since(&self, at: ClockReading) {
        self.shared.own_records.set_unheld_since(at);
    }

    /// Creates an election by any lock, held under its [`identity`](ResourceLock::identity).
    /// Namespace, identity and kind of lock in the settings do not count.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the durations are not safe together.
    pub fn over(
        settings: LeaderElection,
        lock: Arc<dyn ResourceLock>,
        environment: Environment,
    ) -> Result<Self, Error> {
        settings.check_but_name()?;
        if lock.identity().is_empty() {
            let text = format!("{} has no identity to be held as", lock.describe());
            return Err(Error::new(ErrorKind::Config, text));
        }
        let (status, _) = watch::channel(Leadership::Candidate { holder: None });
        environment.metrics.set(&names::LEADER, &[&settings.name], 0.0);
        environment.metrics.count(&names::LEADER_SLOWPATH, &[&settings.name], 0);
        let in_flight_writes =
            InFlightWrites::new(environment.clock.clone(), settings.timing.margin);
        Ok(Self {
            shared: Arc::new(ElectionShared {
                settings,
                own_records: OwnRecords::default(),
                gate: Mutex::new(None),
                in_flight_writes,
                permits: Arc::new(Semaphore::new(1)),
                lock,
                environment,
                status,
                access: LockAccess::default(),
                leads_at: Mutex::new(None),
            }),
        })
    }

    /// Returns the name of this process in the Lease.
    ///
    /// As given by [`LeaderElection::identity`], or made at the creation of the elector.
    pub fn identity(&self) -> &str {
        self.shared.lock.identity()
    }

    /// Returns a receiver of the election's state, now and whenever it changes.
    ///
    /// The receiver's present value counts as seen: the first `changed` waits for the next state.
    pub fn watch(&self) -> watch::Receiver<Leadership> {
        self.shared.status.subscribe()
    }

    /// Returns the time for which the running term's validity has been over without the term having
    /// been ended; `None` when all is well.
    pub(super) fn overdue(&self) -> Option<Duration> {
        self.shared.gate.lock().as_ref().and_then(LeaseGate::overdue)
    }

    /// Returns the reason why this process could not lead if no other process did; `None` when the
    /// lock answers, or did, and the API server is away.
    pub(crate) fn unreachable(&self) -> Option<String> {
        self.shared.access.failure()
    }

    /// While this process holds a lock that it created: the time until leadership begins, if
    /// nothing comes between.
    pub(crate) fn leads_in(&self) -> Option<Duration> {
        let at = (*self.shared.leads_at.lock())?;
        Some(at.saturating_duration_since(self.clock().now()))
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.shared.environment.clock
    }

    /// Tries to get the Lease until successful; `None` when `stop` came first. While a term of this
    /// elector or of a clone lasts, this campaign waits for the end of that term.
    ///
    /// # Cancel safety
    /// Dropping the future ends the campaign; a Lease won in that moment is left to expire. With
    /// `stop` the Lease is given back.
    pub async fn campaign(&self, stop: &CancellationToken) -> Option<Term> {
        let shared = &self.shared;
        let permit = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            // The semaphore is never closed.
            permit = Arc::clone(&shared.permits).acquire_owned() => permit.ok(),
        };
        let Some(permit) = permit else {
            shared.status.send_replace(Leadership::Ended);
            return None;
        };
        let machine = Machine::new(
            self.identity().to_owned(),
            shared.settings.timing,
            shared.own_records.clone(),
        );
        let mut handover = Handover::new(machine, shared.settings.handover);
        let mut lock_watch =
            LockWatch::of(Arc::clone(&shared.lock), shared.environment.fork("news"));
        info!(lease = %shared.lock.describe(), identity = %self.identity(), "this replica waits to lead");
        while !stop.is_cancelled() {
            if !shared.attempt_until(&mut handover, stop).await {
                break;
            }
            if let Some(sent) = handover.machine.held() {
                *shared.leads_at.lock() = None;
                return Some(Term::begin(shared, (handover, sent), lock_watch, permit));
            }
            let wait = handover.machine.wait_left(&shared.environment.clock.reading());
            shared.publish(&handover.machine, wait);
            // A wait that is already over was followed by an attempt, which failed: only the pause
            // counts.
            let soon = wait.filter(|wait| !wait.is_zero()).map(|wait| wait + TIMER_GRAIN);
            let pause = soon.unwrap_or(Duration::MAX).min(shared.pause());
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = shared.wait_until_free(&handover.machine, &mut lock_watch) => {}
                () = shared.environment.clock.sleep(pause) => {}
            }
        }
        shared.end_campaign(&handover.machine);
        shared.withdraw(&mut handover).await;
        shared.status.send_replace(Leadership::Ended);
        None
    }
}
