//! Runs the election against a store: campaigns, renews while a term lasts, gives back.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info, warn};

use super::gate::{LeaseGate, Unheld};
use super::lock::ResourceLock;
use super::machine::{Answer, Ask, Concern, Loss, Machine, Written};
use super::news::News;
use super::reach::Reach;
use super::record::ObservedRecord;
use super::settings::{JITTER, LeaderElection};
use crate::client::Client;
use crate::clock::{Clock, Mark};
use crate::error::{Error, ErrorKind};
use crate::metrics::names;
use crate::seams::Seams;

/// How long giving the Lease back, or an event about it, may hold up a shutdown.
const FAREWELL: Duration = Duration::from_secs(2);

/// Attempts that a change of the lock causes begin within this time: candidates spread out, and a lock
/// that changes all the time costs no more than some requests a second.
const PROMPT: Duration = Duration::from_millis(200);

/// Where an election stands, as this process knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Waiting for the Lease; with who holds it, when that is known.
    Candidate {
        /// Identity of the holder.
        holder: Option<String>,
    },
    /// This process leads.
    Leading,
    /// The election is over for this process.
    Ended,
}

/// Campaigns for a Lease. Cheap to clone; all clones together run one campaign or term at a time.
#[derive(Clone, Debug)]
pub struct Elector {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: LeaderElection,
    written: Written,
    /// The gate of the running term.
    gate: Mutex<Option<LeaseGate>>,
    /// One campaign or term at a time: a second one would take the first one's record for its own.
    turn: Arc<Semaphore>,
    lock: Arc<dyn ResourceLock>,
    seams: Seams,
    status: watch::Sender<Leadership>,
    reach: Reach,
}

/// Leadership, from its beginning to its end. It renews itself in the background; dropping it stops
/// that: its gate closes, and the lease is left to expire, as after a crash.
#[derive(Debug)]
pub struct Term {
    task: AbortOnDropHandle<Machine>,
    finish: CancellationToken,
    asked: CancellationToken,
    ending: Ending,
    /// Given back last.
    _turn: OwnedSemaphorePermit,
}

/// Ends a term, however it ends: nothing is written any more, and whoever works is told.
#[derive(Debug)]
struct Ending {
    gate: LeaseGate,
    lost: CancellationToken,
    shared: Arc<Shared>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.gate.close();
        self.lost.cancel();
        let shared = &self.shared;
        *shared.gate.lock() = None;
        shared.seams.metrics.set(&names::LEADER, &[&shared.settings.name], 0.0);
        shared.status.send_if_modified(|status| {
            let is_leading = *status == Leadership::Leading;
            if is_leading {
                *status = Leadership::Candidate { holder: None };
            }
            is_leading
        });
    }
}

impl Elector {
    /// An election by a Lease on the API server of `client` (which must not be gated by it).
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the durations are not safe together.
    pub fn new(settings: LeaderElection, client: &Client) -> Result<Self, Error> {
        let seams = client.seams().fork("leader");
        let identity = settings.identity_or_own(&seams.entropy);
        let namespace = settings
            .namespace
            .clone()
            .or_else(|| std::env::var("POD_NAMESPACE").ok().filter(|value| !value.is_empty()))
            .unwrap_or_else(|| client.default_namespace().to_owned());
        // A renewal that queues behind the requests of reconcilers comes too late; the election has
        // a pace of its own.
        let lock = settings.lock.lock(&client.urgent(), &namespace, &settings.name, &identity);
        Self::over(settings, lock, seams)
    }

    /// An election by any lock, held as its [`identity`](ResourceLock::identity). Namespace, identity
    /// and kind of lock in the settings do not count.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the durations are not safe together.
    pub fn over(
        settings: LeaderElection,
        lock: Arc<dyn ResourceLock>,
        seams: Seams,
    ) -> Result<Self, Error> {
        settings.check()?;
        if lock.identity().is_empty() {
            let text = format!("{} has no identity to be held as", lock.describe());
            return Err(Error::new(ErrorKind::Config, text));
        }
        let (status, _) = watch::channel(Leadership::Candidate { holder: None });
        seams.metrics.set(&names::LEADER, &[&settings.name], 0.0);
        seams.metrics.count(&names::LEADER_SLOWPATH, &[&settings.name], 0);
        Ok(Self {
            shared: Arc::new(Shared {
                settings,
                written: Written::default(),
                gate: Mutex::new(None),
                turn: Arc::new(Semaphore::new(1)),
                lock,
                seams,
                status,
                reach: Reach::default(),
            }),
        })
    }

    /// What this process calls itself in the Lease.
    pub fn identity(&self) -> &str {
        self.shared.lock.identity()
    }

    /// Where the election stands, now and whenever it changes.
    pub fn watch(&self) -> watch::Receiver<Leadership> {
        self.shared.status.subscribe()
    }

    /// How long the running term's validity has been over without the term having been ended; `None`
    /// when all is well.
    pub(super) fn overdue(&self) -> Option<Duration> {
        self.shared.gate.lock().as_ref().and_then(LeaseGate::overdue)
    }

    /// Why this process could not lead if nobody else did; `None` when the lock answers it, or did,
    /// and the API server is away.
    pub(crate) fn unreachable(&self) -> Option<String> {
        self.shared.reach.trouble()
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.shared.seams.clock
    }

    /// Tries to get the Lease until it has it; `None` when `stop` came first. While a term of this
    /// elector or of a clone lasts, it waits for the end of that.
    ///
    /// # Cancel safety
    /// Dropping it ends the campaign; a Lease won in that moment is left to expire. With `stop` it is
    /// given back.
    pub async fn campaign(&self, stop: &CancellationToken) -> Option<Term> {
        let shared = &self.shared;
        let turn = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            // Never closed.
            turn = Arc::clone(&shared.turn).acquire_owned() => turn.ok(),
        };
        let Some(turn) = turn else {
            shared.status.send_replace(Leadership::Ended);
            return None;
        };
        let mut machine = Machine::new(
            self.identity().to_owned(),
            shared.settings.timing,
            shared.written.clone(),
        )
        .with(shared.settings.manners);
        let mut news = News::of(Arc::clone(&shared.lock), shared.seams.fork("news"));
        info!(lease = %shared.lock.describe(), identity = %self.identity(), "waiting to lead");
        while !stop.is_cancelled() {
            if !shared.attempt_until(&mut machine, stop).await {
                break;
            }
            if let Some(sent) = machine.held() {
                return Some(self.begin(machine, sent, news, turn));
            }
            shared.tell(&machine);
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = shared.chance(&machine, &mut news) => {}
                () = shared.seams.clock.sleep(shared.pause()) => {}
            }
        }
        shared.withdraw(&mut machine).await;
        shared.status.send_replace(Leadership::Ended);
        None
    }

    fn begin(&self, machine: Machine, sent: Mark, news: News, turn: OwnedSemaphorePermit) -> Term {
        let shared = self.shared.clone();
        let settings = &shared.settings;
        let clock = shared.seams.clock.clone();
        let gate = LeaseGate::new(shared.lock.describe(), clock, settings.timing, sent);
        shared.seams.metrics.set(&names::LEADER, &[&settings.name], 1.0);
        info!(lease = %shared.lock.describe(), identity = %self.identity(), "leading");
        *shared.gate.lock() = Some(gate.clone());
        shared.status.send_replace(Leadership::Leading);
        let [lost, finish, asked] = std::array::from_fn(|_| CancellationToken::new());
        let task = AbortOnDropHandle::new(tokio::spawn({
            let mut holding = Holding {
                shared: shared.clone(),
                machine,
                news,
                finish: finish.clone(),
                asked: asked.clone(),
            };
            let lost = lost.clone();
            let unheld = Unheld { gate: gate.clone(), tell: move || lost.cancel() };
            async move {
                holding.run(&unheld.gate).await;
                drop(unheld);
                holding.machine
            }
        }));
        tokio::spawn({
            let shared = shared.clone();
            async move { shared.event("became leader").await }
        });
        Term { task, finish, asked, ending: Ending { gate, lost, shared }, _turn: turn }
    }
}

impl Term {
    /// What writes of this term ask first.
    pub fn gate(&self) -> LeaseGate {
        self.ending.gate.clone()
    }

    /// Cancelled when leadership is lost: stop working at once.
    pub fn lost(&self) -> CancellationToken {
        self.ending.lost.clone()
    }

    /// Cancelled when another process [asked](LeaderElection::ask) for the lease and this one
    /// [lends](LeaderElection::lend) it: end the work as at a clean stop, then the term, and campaign
    /// again.
    pub fn asked(&self) -> CancellationToken {
        self.asked.clone()
    }

    /// Ends the term. With `all_ended` (no work of this term runs any more) the Lease is given
    /// back, so that another replica leads within seconds; without, it is left to expire.
    pub async fn end(self, all_ended: bool) {
        let Self { task, finish, asked: _, ending, _turn } = self;
        let was_lost = ending.lost.is_cancelled();
        finish.cancel();
        let machine = task.await;
        let shared = Arc::clone(&ending.shared);
        drop(ending);
        let clock = shared.seams.clock.clone();
        let lease = shared.lock.describe();
        match machine {
            Ok(_) if was_lost => {}
            Ok(_) if !shared.settings.release => {}
            Ok(mut machine) if all_ended => {
                let given_back = clock.within(FAREWELL, shared.release(&mut machine)).await;
                if given_back.is_none() {
                    warn!(%lease, "the lease could not be given back in time; it expires");
                }
            }
            Ok(_) => warn!(%lease, "work was cut short; the lease is left to expire"),
            Err(error) => warn!(%lease, %error, "the election's task failed; the lease expires"),
        }
        clock.within(FAREWELL, shared.event("stopped leading")).await;
    }
}

/// What keeps a term going.
struct Holding {
    shared: Arc<Shared>,
    machine: Machine,
    news: News,
    finish: CancellationToken,
    asked: CancellationToken,
}

impl Holding {
    /// Renews until leadership is lost or `finish`.
    async fn run(&mut self, gate: &LeaseGate) {
        let clock = self.shared.seams.clock.clone();
        loop {
            let left = self.machine.time_left(&clock.mark()).unwrap_or_default();
            let until = clock.after(self.shared.pause().min(left));
            tokio::select! {
                biased;
                () = self.finish.cancelled() => return,
                told = concern(&self.machine, &mut self.news) => {
                    if let Some(over) = told {
                        self.machine.overtaken(&over);
                    }
                }
                () = clock.sleep_until(until) => {}
            }
            let is_held = self.machine.held().is_some();
            if is_held && !self.machine.expire(&clock.mark()) {
                let left = self.machine.time_left(&clock.mark()).unwrap_or_default();
                tokio::select! {
                    biased;
                    () = self.finish.cancelled() => return,
                    _ = clock.within(left, self.shared.attempt(&mut self.machine)) => {}
                }
                self.machine.expire(&clock.mark());
            }
            match (self.machine.held(), self.machine.take_loss()) {
                (Some(sent), _) => gate.renewed(sent),
                (None, loss) => {
                    gate.close();
                    self.shared.tell_loss(loss);
                    return;
                }
            }
            if self.machine.is_asked() && !self.asked.is_cancelled() {
                info!(lease = %self.shared.lock.describe(), "another process asks for the lease");
                self.asked.cancel();
            }
        }
    }
}

/// Waits for news that a leader must look at; with the record when another holds the lock.
async fn concern(machine: &Machine, news: &mut News) -> Option<ObservedRecord> {
    loop {
        let told = news.next().await;
        match machine.concern(&told) {
            Concern::Nothing => {}
            Concern::Look => return None,
            Concern::Over => return Some(told),
        }
    }
}

impl Shared {
    /// Waits until the lock tells that it is free, and a moment more.
    async fn chance(&self, machine: &Machine, news: &mut News) {
        while !machine.is_chance(&news.next().await) {}
        let moment = (PROMPT / 2).mul_f64(1.0 + self.seams.entropy.unit());
        self.seams.clock.sleep(moment).await;
    }

    /// An attempt; false when `stop` came first. Then a lease that it won, or may have won, is given
    /// back.
    async fn attempt_until(&self, machine: &mut Machine, stop: &CancellationToken) -> bool {
        let clock = &self.seams.clock;
        let ended = {
            let mut attempt = std::pin::pin!(self.attempt(machine));
            tokio::select! {
                biased;
                () = &mut attempt => return true,
                () = stop.cancelled() => clock.within(FAREWELL, attempt).await.is_some(),
            }
        };
        if !ended {
            machine.stale();
        }
        if self.settings.release && (machine.held().is_some() || !ended) {
            clock.within(FAREWELL, self.release(machine)).await;
        }
        false
    }

    /// Takes a request for the lease back, if one was made.
    async fn withdraw(&self, machine: &mut Machine) {
        let clock = &self.seams.clock;
        let asks = async {
            for _ in 0..4 {
                let Some(ask) = machine.withdraw() else { return };
                let answer = self.ask(&ask).await;
                if machine.released(&ask, answer, &clock.mark()) {
                    return;
                }
            }
        };
        clock.within(FAREWELL, asks).await;
    }

    /// One attempt to acquire or renew.
    async fn attempt(&self, machine: &mut Machine) {
        let clock = &self.seams.clock;
        let mut ask = machine.attempt(&clock.mark(), clock.wall());
        loop {
            if ask == Ask::Read && machine.held().is_some() {
                self.seams.metrics.count(&names::LEADER_SLOWPATH, &[&self.settings.name], 1);
            }
            let sent = clock.mark();
            let answer = self.ask(&ask).await;
            let was_answered = !matches!(answer, Answer::Failed);
            let next = machine.answered(&ask, answer, &sent, &clock.mark(), clock.wall());
            match next {
                Some(next) => ask = next,
                None => {
                    if was_answered {
                        self.reach.answered();
                    }
                    return;
                }
            }
        }
    }

    async fn ask(&self, ask: &Ask) -> Answer {
        let request = async {
            match ask {
                Ask::Read => self.lock.get().await,
                Ask::Create(record) => self.lock.create(record.clone()).await.map(Some),
                Ask::Replace { version, record } => {
                    self.lock.update(version, record.clone()).await.map(Some)
                }
            }
        };
        let limit = self.settings.timing.request_limit();
        match self.seams.clock.within(limit, request).await {
            Some(Ok(Some(seen))) => Answer::Lease(seen),
            Some(Ok(None)) => Answer::Missing,
            Some(Err(error)) => match error.kind() {
                ErrorKind::Conflict | ErrorKind::AlreadyExists => Answer::Conflict,
                // Of a creation it means that there is no such namespace.
                ErrorKind::NotFound if matches!(ask, Ask::Replace { .. }) => Answer::Conflict,
                // A refusal after an attempt of ours that may have worked: the record tells.
                _ if *ask != Ask::Read && error.code() == Some(409) => Answer::Conflict,
                _ if matches!(ask, Ask::Replace { .. }) && error.code() == Some(404) => {
                    Answer::Conflict
                }
                _ => {
                    warn!(lease = %self.lock.describe(), error = ?error, "an election request failed");
                    self.reach.failed(&error);
                    Answer::Failed
                }
            },
            None => {
                warn!(lease = %self.lock.describe(), ?limit, "an election request was not answered");
                let text = format!("{} does not answer within {limit:?}", self.lock.describe());
                self.reach.failed(&Error::new(ErrorKind::Timeout, text));
                Answer::Failed
            }
        }
    }

    async fn release(&self, machine: &mut Machine) {
        let clock = &self.seams.clock;
        // Read and replace, and once more if the first knowledge was stale.
        for _ in 0..4 {
            let Some(ask) = machine.release(clock.wall()) else { return };
            let answer = self.ask(&ask).await;
            if machine.released(&ask, answer, &clock.mark()) {
                info!(lease = %self.lock.describe(), "gave the lease back");
                return;
            }
        }
    }

    fn pause(&self) -> Duration {
        let stretch = 1.0 + (JITTER - 1.0) * self.seams.entropy.unit();
        self.settings.timing.retry_period.mul_f64(stretch)
    }

    /// Publishes the holder that a candidate sees, once per change.
    fn tell(&self, machine: &Machine) {
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

    fn tell_loss(&self, loss: Option<Loss>) {
        let lease = self.lock.describe();
        match loss {
            Some(Loss::Taken(holder)) => {
                warn!(%lease, leader = %holder, "another replica took the lease")
            }
            _ => warn!(%lease, "the lease could not be renewed in time"),
        }
        self.seams.metrics.set(&names::LEADER, &[&self.settings.name], 0.0);
        self.status.send_replace(Leadership::Candidate { holder: None });
    }

    async fn event(&self, what: &str) {
        let note = format!("{} {what}", self.lock.identity());
        match self.seams.clock.within(FAREWELL, self.lock.record_event(note)).await {
            Some(Err(error)) => debug!(error = ?error, "could not record an election event"),
            None => debug!("recording an election event took too long"),
            Some(Ok(())) => {}
        }
    }
}
