//! The election without I/O: what to ask next, and what an answer means.
//!
//! An attempt is a short exchange: [`Machine::attempt`] gives the first request, and
//! [`Machine::answered`] the next one, until there is none; then the caller waits for a retry
//! period. Everything that decides safety is here, so that a simulation can run it a million times.

use std::cmp::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::gate::remaining;
use super::record::{LeaderElectionRecord, ObservedRecord, RELEASED};
use super::settings::{JITTER, Timing};
use super::written::{Wait, Written};
use crate::clock::Mark;

/// A request of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ask {
    Read,
    Create(LeaderElectionRecord),
    Replace { version: String, record: LeaderElectionRecord },
}

/// What became of a request.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The Lease as it was read, or as it is after our write.
    Lease(ObservedRecord),
    /// There is no Lease.
    Missing,
    /// Somebody else wrote first; nothing of ours was stored.
    Conflict,
    /// No answer, or one that does not tell whether the write was executed.
    Failed,
}

/// Why a term ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Taken(String),
    NotRenewed,
}

/// A candidate that finds so many records of its own in a row, and was told of none that it was stored,
/// leaves the lease to others.
const IN_VAIN: u8 = 3;

/// What a process asks for and grants beside the race itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manners {
    /// Asks a holder for the lease.
    pub(super) asks: bool,
    /// Gives the lease to who asks, and lets them have it first.
    pub(super) lends: bool,
}

/// What a leader must do about a record that it was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    Nothing,
    /// Look at the lock: it may have changed hands, or somebody asks for it.
    Look,
    /// Another holds it.
    Over,
}

#[derive(Debug)]
struct Sight {
    lease: ObservedRecord,
    /// When this version was first seen.
    first: Mark,
    /// Is it, as far as we know, still the stored version?
    current: bool,
}

#[derive(Debug)]
pub(super) struct Machine {
    identity: String,
    timing: Timing,
    written: Written,
    manners: Manners,
    sight: Option<Sight>,
    /// While leading: when the last success was about to be sent.
    held: Option<Mark>,
    /// While leading: when the first attempt after the last success began that failed.
    failing: Option<Mark>,
    lost: Option<Loss>,
    began: Option<Mark>,
    reads: u8,
    /// Records of its own that it found since the last success without being told that they were stored.
    in_vain: u8,
    /// The version of the last one.
    found: Option<String>,
    /// While leading: when the lock was acquired, and the transitions, as they are stored.
    tenure: Option<(Timestamp, i32)>,
    /// When the lock was first found missing after the last time that it was seen.
    missing: Option<Mark>,
}

impl Machine {
    pub(super) fn new(identity: String, timing: Timing, written: Written) -> Self {
        Self {
            identity,
            timing,
            written,
            manners: Manners::default(),
            sight: None,
            held: None,
            failing: None,
            lost: None,
            began: None,
            reads: 0,
            in_vain: 0,
            found: None,
            tenure: None,
            missing: None,
        }
    }

    pub(super) fn with(self, manners: Manners) -> Self {
        Self { manners, ..self }
    }

    /// While leading: when the last success was about to be sent.
    pub(super) fn held(&self) -> Option<Mark> {
        self.held
    }

    /// The last holder seen; `None` when the Lease was free or has not been seen.
    pub(super) fn holder(&self) -> Option<&str> {
        self.sight.as_ref()?.lease.record.holder.as_deref()
    }

    /// How long the lock that it holds lets it write nothing yet, because it made the lock; `None` when it
    /// holds none of that kind.
    pub(super) fn wait_left(&self, now: &Mark) -> Option<Duration> {
        let sight = self.sight.as_ref().filter(|_| self.held.is_none())?;
        if !self.is_ours(&sight.lease.record) || self.missing.is_some() {
            return None;
        }
        let wait = self.written.wait(&sight.lease.record)?.seen(sight.first);
        Some(wait.left(now).unwrap_or_default())
    }

    /// While leading: did somebody ask for the lease to whom it is lent?
    pub(super) fn is_asked(&self) -> bool {
        let asked = self.sight.as_ref().is_some_and(|sight| self.asker(sight).is_some());
        self.held.is_some() && self.manners.lends && asked
    }

    /// Whoever asks for the lease, other than this process.
    fn asker<'a>(&self, sight: &'a Sight) -> Option<&'a str> {
        let asker = sight.lease.record.requested_by.as_deref();
        asker.filter(|asker| *asker != self.identity)
    }

    /// While leading: what to do about a record that the lock told of. It may be an old one.
    pub(super) fn concern(&self, told: &ObservedRecord) -> Concern {
        let seen = self.sight.as_ref().map(|sight| sight.lease.version.as_str());
        // Versions of API objects are numbers; those of other locks say nothing about order.
        let order = seen.and_then(|seen| {
            let (told, seen) = (told.version.parse::<u64>().ok()?, seen.parse::<u64>().ok()?);
            Some(told.cmp(&seen))
        });
        if matches!(order, Some(Ordering::Less | Ordering::Equal)) {
            return Concern::Nothing;
        }
        match told.record.holder.as_deref() {
            Some(holder) if holder != self.identity && order.is_some() => Concern::Over,
            Some(_) if self.is_ours(&told.record) => {
                let asks = told.record.requested_by.as_ref();
                let is_new = asks.is_some_and(|asker| *asker != self.identity) && !self.is_asked();
                if self.manners.lends && is_new { Concern::Look } else { Concern::Nothing }
            }
            _ => Concern::Look,
        }
    }

    /// Ends leadership because another holds the lock.
    pub(super) fn overtaken(&mut self, told: &ObservedRecord) {
        let holder = told.record.holder.clone().unwrap_or_default();
        self.stale();
        self.lose(Loss::Taken(holder));
    }

    /// A candidate was told of a record: is it worth an attempt at once?
    pub(super) fn is_chance(&self, told: &ObservedRecord) -> bool {
        let seen = self.sight.as_ref().map(|sight| sight.lease.version.as_str());
        told.record.holder.is_none() && seen != Some(told.version.as_str())
    }

    /// Why leadership ended, once.
    pub(super) fn take_loss(&mut self) -> Option<Loss> {
        self.lost.take()
    }

    /// How long leadership lasts if nothing more succeeds; `None` when not leading.
    pub(super) fn time_left(&self, now: &Mark) -> Option<Duration> {
        let valid = remaining(&self.timing, &self.held?, now)?;
        let Some(failing) = self.failing else { return Some(valid) };
        let renewing = self.timing.renew_deadline.checked_sub(failing.longest_until(now))?;
        Some(valid.min(renewing)).filter(|left| !left.is_zero())
    }

    /// Ends leadership whose time is up; true if it ended it.
    pub(super) fn expire(&mut self, now: &Mark) -> bool {
        let over = self.held.is_some() && self.time_left(now).is_none();
        if over {
            self.lose(Loss::NotRenewed);
        }
        over
    }

    /// Begins an attempt.
    pub(super) fn attempt(&mut self, now: &Mark, wall: Timestamp) -> Ask {
        self.began = Some(*now);
        self.reads = 0;
        if self.held.is_some()
            && let Some(sight) = self.sight.as_ref().filter(|sight| sight.current)
        {
            return self.take(sight, wall);
        }
        self.read()
    }

    /// Takes in the answer to `ask`; `sent` was read before it was sent. The next request of this
    /// attempt, if there is one.
    pub(super) fn answered(
        &mut self,
        ask: &Ask,
        answer: Answer,
        sent: &Mark,
        now: &Mark,
        wall: Timestamp,
    ) -> Option<Ask> {
        match answer {
            Answer::Lease(lease) => {
                self.see(lease, now);
                if *ask == Ask::Read {
                    self.find();
                    return self.decide(now, wall);
                }
                self.written(ask, sent, now)
            }
            Answer::Missing => self.missing(now, wall),
            Answer::Conflict => {
                self.stale();
                // One more look tells who won; a second conflict waits for the next attempt.
                (self.reads < 2).then(|| self.read())
            }
            Answer::Failed => {
                self.stale();
                if self.held.is_some() {
                    self.failing = self.failing.or(self.began);
                }
                None
            }
        }
    }

    /// What gives the Lease back, if it is ours; the record must be current (else read first).
    pub(super) fn release(&mut self, wall: Timestamp) -> Option<Ask> {
        self.held = None;
        self.failing = None;
        let Some(sight) = self.sight.as_ref().filter(|sight| sight.current) else {
            return Some(Ask::Read);
        };
        // Whoever finds it released writes at once, and would take a wait that is not over for over.
        if !self.is_ours(&sight.lease.record) || self.written.wait(&sight.lease.record).is_some() {
            return None;
        }
        let record = LeaderElectionRecord {
            holder: None,
            duration: RELEASED,
            acquired: Some(wall),
            renewed: Some(wall),
            // The hint whose turn it is.
            requested_by: self.asker(sight).filter(|_| self.manners.lends).map(str::to_owned),
            ..sight.lease.record.clone()
        };
        Some(Ask::Replace { version: sight.lease.version.clone(), record })
    }

    /// What takes a request of ours back, if there is one; the record must be current (else read
    /// first).
    pub(super) fn withdraw(&self) -> Option<Ask> {
        if !self.manners.asks {
            return None;
        }
        let Some(sight) = self.sight.as_ref().filter(|sight| sight.current) else {
            return Some(Ask::Read);
        };
        let record = &sight.lease.record;
        let is_ours = record.requested_by.as_deref() == Some(&self.identity);
        is_ours.then(|| Ask::Replace {
            version: sight.lease.version.clone(),
            record: LeaderElectionRecord { requested_by: None, ..record.clone() },
        })
    }

    /// Takes in what [`release`](Self::release) or [`withdraw`](Self::withdraw) brought; true when there is nothing left to do.
    pub(super) fn released(&mut self, ask: &Ask, answer: Answer, now: &Mark) -> bool {
        match answer {
            Answer::Lease(lease) => {
                self.see(lease, now);
                *ask != Ask::Read
            }
            Answer::Missing => true,
            Answer::Conflict | Answer::Failed => {
                self.stale();
                false
            }
        }
    }

    fn read(&mut self) -> Ask {
        self.reads += 1;
        Ask::Read
    }

    fn see(&mut self, lease: ObservedRecord, now: &Mark) {
        self.missing = None;
        if self.written.take_unheld(self.timing.lease_duration, now) && self.is_ours(&lease.record)
        {
            self.written.set_wait(&lease.record, None);
        }
        match &mut self.sight {
            Some(sight) if sight.lease.version == lease.version => sight.current = true,
            sight => *sight = Some(Sight { lease, first: *now, current: true }),
        }
    }

    /// What was seen may not be what is stored any more.
    pub(super) fn stale(&mut self) {
        if let Some(sight) = &mut self.sight {
            sight.current = false;
        }
    }

    fn lose(&mut self, loss: Loss) {
        self.held = None;
        self.failing = None;
        self.tenure = None;
        self.lost = Some(loss);
    }

    /// A write of ours was stored.
    fn written(&mut self, ask: &Ask, sent: &Mark, now: &Mark) -> Option<Ask> {
        if self.holder() != Some(&self.identity) {
            let asker = self.sight.as_ref().map(|sight| &sight.lease.record.requested_by);
            if self.manners.asks && asker.is_some_and(Option::is_none) {
                // The lock has no place for a request: asking on would only keep it changing.
                self.manners.asks = false;
            }
            // Something between us and the store changed the holder.
            return self.decide_loss();
        }
        // A request leaves the holder, who may be another process of this name.
        let record = match ask {
            Ask::Create(record) | Ask::Replace { record, .. } => record,
            Ask::Read => return None,
        };
        if !self.written.contains(record) {
            return None;
        }
        if let Some(sight) = &self.sight
            && !self.is_ours(&sight.lease.record)
        {
            // The store may keep a record in other words.
            self.written.add(&sight.lease.record, self.written.wait(record));
        }
        let is_over = self.is_wait_over(now);
        // An answer that took longer than the lease lasts gives nothing; the next attempt renews.
        if remaining(&self.timing, sent, now).is_some() {
            (self.failing, self.in_vain) = (None, 0);
            if is_over {
                self.held = Some(*sent);
                let record = self.sight.as_ref().map(|sight| &sight.lease.record);
                self.tenure = record.and_then(|it| Some((it.acquired?, it.transitions)));
            }
        }
        None
    }

    /// A record of ours was stored: may its holder write?
    fn is_wait_over(&self, now: &Mark) -> bool {
        let Some(sight) = &self.sight else { return false };
        let record = &sight.lease.record;
        let Some(wait) = self.written.wait(record).map(|wait| wait.seen(sight.first)) else {
            return true;
        };
        // A leader that makes its lock again while its validity lasts held it all the time: nobody else
        // can have waited for long enough meanwhile.
        let is_led = self.held.is_some_and(|held| remaining(&self.timing, &held, now).is_some());
        let is_over = is_led || wait.left(now).is_none();
        self.written.set_wait(record, Some(wait).filter(|_| !is_over));
        is_over
    }

    /// Counts the record that was read if it is one of its own that this process does not hold.
    fn find(&mut self) {
        let Some(sight) = self.sight.as_ref().filter(|_| self.held.is_none()) else { return };
        let version = &sight.lease.version;
        if !self.is_ours(&sight.lease.record) {
            // It passed on, or may.
            self.in_vain = 0;
        } else if self.found.as_ref() != Some(version) {
            self.found = Some(version.clone());
            self.in_vain = self.in_vain.saturating_add(1);
        }
    }

    fn decide_loss(&mut self) -> Option<Ask> {
        if self.held.is_some() {
            let holder = self.holder().unwrap_or_default().to_owned();
            self.lose(Loss::Taken(holder));
        }
        None
    }

    /// The Lease was read: renew, take or leave it.
    fn decide(&mut self, now: &Mark, wall: Timestamp) -> Option<Ask> {
        let sight = self.sight.as_ref()?;
        let free = match sight.lease.record.holder.as_deref() {
            None => !self.is_courteous(sight, now),
            Some(_) if self.is_ours(&sight.lease.record) => {
                !self.is_left(sight, now) && !self.stands_back(sight, now)
            }
            Some(_) if self.held.is_some() => return self.decide_loss(),
            Some(_) => self.unchanged_for_long(sight, now),
        };
        if free { Some(self.take(sight, wall)) } else { self.request(sight) }
    }

    /// Does this process let the asker have the free lease first? For as long as that one needs to
    /// look again.
    fn is_courteous(&self, sight: &Sight, now: &Mark) -> bool {
        let turn = self.timing.retry_period.mul_f64(2.0 * JITTER);
        self.manners.lends && self.asker(sight).is_some() && sight.first.steady_until(now) < turn
    }

    /// Is the record what a term of this process left behind whose work was cut, though somebody asks
    /// for the lease? Then that one has it as soon as it is over, and this process comes after it.
    fn is_left(&self, sight: &Sight, now: &Mark) -> bool {
        let is_lent = self.manners.lends && self.asker(sight).is_some();
        self.held.is_none() && is_lent && !self.is_over_for_others(sight, now)
    }

    /// Is the record one that this process wrote again and again, and each time it was not told so? Who
    /// cannot lead must not keep the lease from those who can: they have it as soon as it is over.
    fn stands_back(&self, sight: &Sight, now: &Mark) -> bool {
        let is_vain = self.held.is_none() && self.in_vain >= IN_VAIN;
        is_vain && !self.is_over_for_others(sight, now)
    }

    /// Unchanged for its whole duration, and for as long as others need to look again?
    fn is_over_for_others(&self, sight: &Sight, now: &Mark) -> bool {
        let turn = self.timing.retry_period.mul_f64(2.0 * JITTER);
        sight.first.steady_until(now) >= self.timing.lease_duration + turn
    }

    /// Asks the holder for the lease, once: a record that changed over and over would never pass on.
    fn request(&self, sight: &Sight) -> Option<Ask> {
        let old = &sight.lease.record;
        let is_held = old.holder.as_ref().is_some_and(|holder| *holder != self.identity);
        let asks = self.manners.asks && is_held && old.requested_by.is_none();
        asks.then(|| Ask::Replace {
            version: sight.lease.version.clone(),
            record: LeaderElectionRecord {
                requested_by: Some(self.identity.clone()),
                ..old.clone()
            },
        })
    }

    /// The Lease does not exist: make one, unless its last holder is likely to do so. Until its holder may
    /// write passes a lease duration: whoever held a Lease that was deleted may have renewed it until then,
    /// whatever this process saw of it.
    fn missing(&mut self, now: &Mark, wall: Timestamp) -> Option<Ask> {
        let since = *self.missing.get_or_insert(*now);
        let mut lasts = self.timing.lease_duration;
        if let Some(Sight { lease: ObservedRecord { record, .. }, .. }) = &self.sight {
            let is_of_another = record.holder.is_some() && !self.is_ours(record);
            if is_of_another && since.steady_until(now) < self.timing.retry_period {
                return None;
            }
            lasts = lasts.max(record.duration);
        }
        let record = LeaderElectionRecord {
            holder: Some(self.identity.clone()),
            duration: self.timing.lease_duration,
            acquired: Some(wall),
            renewed: Some(wall),
            ..LeaderElectionRecord::default()
        };
        self.written.add(&record, Some(Wait::new(lasts)));
        Some(Ask::Create(record))
    }

    /// Did this process write it, whatever became of the time of its renewal?
    fn is_ours(&self, record: &LeaderElectionRecord) -> bool {
        // Another process of this name would have acquired it.
        let tenure = record.acquired.map(|acquired| (acquired, record.transitions));
        let is_edited = self.tenure.is_some() && self.tenure == tenure;
        let is_known = self.written.contains(record) || is_edited;
        record.holder.as_deref() == Some(&self.identity) && is_known
    }

    /// Seen unchanged for its whole duration, by a clock that does not count the machine's sleep?
    fn unchanged_for_long(&self, sight: &Sight, now: &Mark) -> bool {
        let duration = sight.lease.record.duration.max(self.timing.lease_duration);
        sight.first.steady_until(now) >= duration
    }

    fn wait(&self) -> Wait {
        Wait::new(self.timing.lease_duration)
    }

    fn take(&self, sight: &Sight, wall: Timestamp) -> Ask {
        let old = &sight.lease.record;
        let ours = self.is_ours(old);
        let record = LeaderElectionRecord {
            holder: Some(self.identity.clone()),
            duration: self.timing.lease_duration,
            acquired: if ours { old.acquired } else { Some(wall) },
            renewed: Some(if ours { after(old.renewed, wall) } else { wall }),
            transitions: if ours { old.transitions } else { old.transitions.saturating_add(1) },
            // Who takes it has answered every request.
            requested_by: old.requested_by.clone().filter(|_| ours),
            ..old.clone()
        };
        let wait = match ours {
            true => self.written.wait(old).map(|wait| wait.seen(sight.first)),
            // Nobody gave it back: somebody made it, or emptied it.
            false if old.holder.is_none() && !old.is_released() => Some(self.wait()),
            false => None,
        };
        // What is missing of it is made.
        let wait = wait.or_else(|| sight.lease.is_partial.then(|| self.wait()));
        self.written.add(&record, wait);
        Ask::Replace { version: sight.lease.version.clone(), record }
    }
}

/// Two renewals must differ even when the wall clock stands still or is set back: a lock may tell
/// versions apart by the text of the record alone.
fn after(last: Option<Timestamp>, wall: Timestamp) -> Timestamp {
    let next = last.and_then(|last| last.checked_add(jiff::SignedDuration::from_micros(1)).ok());
    next.map_or(wall, |next| next.max(wall))
}
