//! State machine of the election, without I/O: the next request to send, and the meaning of an
//! answer.
//!
//! An attempt is a short exchange: [`Machine::attempt`] gives the first request, and
//! [`Machine::answered`] the next request, until none is left; then the caller waits for a retry
//! period. Every decision that safety rests on is here, so that a simulation can run the election a
//! million times.

// DESIGN.md, 67: A candidate whose answers are lost yields the lease
// DESIGN.md, 73: The creator of a lock waits for a lease duration before it writes
// DESIGN.md, 100: A leader recreates its deleted lock without the creation wait
// DESIGN.md, 115: Handing over wraps the election machine

use std::cmp::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::own_records::{CreationWait, OwnRecords};
use crate::leader::durations::{JITTER, LeaseDurations};
use crate::leader::gate::remaining;
use crate::leader::lock::{LeaderElectionRecord, ObservedRecord, RELEASED};
use windlass_core::clock::ClockReading;

/// Furthest time of renewal in the future that is carried on: more than clocks of machines differ.
const LONGEST_LEAD: Duration = Duration::from_secs(24 * 3600);

/// A request of an attempt.
#[derive(Clone, Debug, PartialEq)]
#[doc(hidden)]
pub enum LockRequest {
    Read,
    Create(LeaderElectionRecord),
    Replace { version: String, record: LeaderElectionRecord },
}

/// Outcome of a request.
#[derive(Clone, Debug)]
pub enum LockResponse {
    /// The Lease as read from the API server, or as our write left it.
    Lease(ObservedRecord),
    /// There is no Lease.
    Missing,
    /// Another process wrote first; nothing of ours was stored.
    Conflict,
    /// No answer, or an answer that leaves open whether the write was executed.
    Failed,
}

/// Reason for which a term ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::leader) enum LossReason {
    /// Another process holds the lock: its identity, empty if the lock has none.
    Taken(String),
    /// No renewal succeeded in time.
    NotRenewed,
}

/// A candidate that finds this many records of its own in a row, none of them known to have been
/// stored, leaves the lease to others.
const MOST_UNACKNOWLEDGED: u8 = 3;

/// Next step of an attempt.
#[derive(Debug)]
pub(super) enum AttemptStep {
    Send(LockRequest),
    /// The lease may be taken or renewed by [`Machine::take`]. Leaving the lease alone is as safe.
    Take(LeadershipPermit),
    /// The attempt is over.
    End,
}

/// Permission to take or renew the lease in its last observed state. Only [`Machine::answered`]
/// grants this permission.
#[derive(Debug)]
pub(super) struct LeadershipPermit(());

/// Reaction of a leader to a record that the lock reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) enum Reaction {
    Nothing,
    /// A newer record of this process, which still leads.
    Renewed,
    /// Read the lock: the lock may have changed hands.
    Read,
    /// Another process holds the lock.
    Overtaken,
}

/// Last observed state of the lock.
#[derive(Debug)]
struct Observation {
    lease: ObservedRecord,
    /// Clock reading at the first sight of this version.
    first: ClockReading,
    /// Whether this is, as far as this process knows, still the stored version.
    current: bool,
}

/// State of one process in an election.
#[derive(Debug)]
pub struct Machine {
    identity: String,
    timing: LeaseDurations,
    own_records: OwnRecords,
    observation: Option<Observation>,
    /// While leading: the time just before the last successful request was sent.
    held: Option<ClockReading>,
    /// While leading: the start of the first attempt that failed after the last success.
    failing: Option<ClockReading>,
    lost: Option<LossReason>,
    /// Start of the current attempt.
    began: Option<ClockReading>,
    /// Reads of the current attempt.
    reads: u8,
    /// Number of own records that this process found since the last success without an answer that
    /// these records were stored.
    unacknowledged: u8,
    /// Version of the last of these records.
    found: Option<String>,
    /// While leading: the time at which the lock was acquired, and the transitions, as they are
    /// stored.
    tenure: Option<(Timestamp, i32)>,
    /// Time at which the lock was first found missing after its last observation.
    missing: Option<ClockReading>,
}

impl Machine {
    #[doc(hidden)]
    pub fn new(identity: String, timing: LeaseDurations, own_records: OwnRecords) -> Self {
        Self {
            identity,
            timing,
            own_records,
            observation: None,
            held: None,
            failing: None,
            lost: None,
            began: None,
            reads: 0,
            unacknowledged: 0,
            found: None,
            tenure: None,
            missing: None,
        }
    }

    /// The name of this process in records.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Last observed record.
    pub(super) fn seen(&self) -> Option<&ObservedRecord> {
        self.observation.as_ref().map(|observation| &observation.lease)
    }

    /// Last observed record, if that record, as far as this process knows, is still stored.
    pub(super) fn current(&self) -> Option<&ObservedRecord> {
        self.observation
            .as_ref()
            .filter(|observation| observation.current)
            .map(|observation| &observation.lease)
    }

    /// While leading: the time just before the last successful request was sent.
    pub fn held(&self) -> Option<ClockReading> {
        self.held
    }

    /// The last holder seen; `None` when the Lease was free or has not been seen.
    pub(in crate::leader) fn holder(&self) -> Option<&str> {
        self.observation.as_ref()?.lease.record.holder.as_deref()
    }

    /// Returns the time for which this process must not write yet although it holds the lock,
    /// because it created the lock; `None` when it holds no such lock.
    pub(in crate::leader) fn wait_left(&self, now: &ClockReading) -> Option<Duration> {
        let observation = self.observation.as_ref().filter(|_| self.held.is_none())?;
        if !self.is_ours(&observation.lease.record) || self.missing.is_some() {
            return None;
        }
        let wait = self.own_records.wait(&observation.lease.record)?.seen(observation.first);
        Some(wait.left(now).unwrap_or_default())
    }

    /// While leading: returns the reaction to a record that the lock reported. The record may be
    /// outdated.
    pub(in crate::leader) fn reaction(&self, reported: &ObservedRecord) -> Reaction {
        let seen = self.observation.as_ref().map(|observation| observation.lease.version.as_str());
        // Versions of API objects are numbers; those of other locks say nothing about order.
        let order = seen.and_then(|seen| {
            let (reported, seen) =
                (reported.version.parse::<u64>().ok()?, seen.parse::<u64>().ok()?);
            Some(reported.cmp(&seen))
        });
        // A reported record may be older than the record that this process read or wrote itself.
        if matches!(order, Some(Ordering::Less | Ordering::Equal)) {
            return Reaction::Nothing;
        }
        match reported.record.holder.as_deref() {
            Some(holder) if holder != self.identity && order.is_some() => Reaction::Overtaken,
            Some(_) if self.is_ours(&reported.record) => Reaction::Renewed,
            _ => Reaction::Read,
        }
    }

    /// Ends leadership because another holds the lock.
    pub(in crate::leader) fn overtaken(&mut self, reported: &ObservedRecord) {
        let holder = reported.record.holder.clone().unwrap_or_default();
        self.mark_stale();
        self.end_leadership(LossReason::Taken(holder));
    }

    /// For a candidate: whether a reported record is worth an attempt at once.
    pub(in crate::leader) fn is_worth_attempt(&self, reported: &ObservedRecord) -> bool {
        let seen = self.observation.as_ref().map(|observation| observation.lease.version.as_str());
        reported.record.holder.is_none() && seen != Some(reported.version.as_str())
    }

    /// Returns, once, the reason for which leadership ended.
    pub(in crate::leader) fn take_loss(&mut self) -> Option<LossReason> {
        self.lost.take()
    }

    /// Returns the time that leadership lasts if no further request succeeds; `None` when not
    /// leading.
    pub fn time_left(&self, now: &ClockReading) -> Option<Duration> {
        let valid = remaining(&self.timing, &self.held?, now)?;
        let Some(failing) = self.failing else { return Some(valid) };
        // After a failure the renew deadline counts, too, and may end before the validity.
        let renewing = self.timing.renew_deadline.checked_sub(failing.longest_until(now))?;
        Some(valid.min(renewing)).filter(|left| !left.is_zero())
    }

    /// Ends leadership whose time is up; returns whether leadership ended.
    pub fn expire(&mut self, now: &ClockReading) -> bool {
        let over = self.held.is_some() && self.time_left(now).is_none();
        if over {
            self.end_leadership(LossReason::NotRenewed);
        }
        over
    }

    /// Begins an attempt.
    pub(in crate::leader) fn attempt(
        &mut self,
        now: &ClockReading,
        wall: Timestamp,
    ) -> LockRequest {
        self.began = Some(*now);
        self.reads = 0;
        // A leader that knows the stored version renews without a read.
        if self.held.is_some()
            && let Some(observation) =
                self.observation.as_ref().filter(|observation| observation.current)
        {
            return self.write(observation, wall);
        }
        self.read()
    }

    /// Takes in the answer to `request`; `sent` was read before the request left. Returns the next
    /// step of this attempt.
    pub(super) fn answered(
        &mut self,
        request: &LockRequest,
        answer: LockResponse,
        sent: &ClockReading,
        now: &ClockReading,
        wall: Timestamp,
    ) -> AttemptStep {
        match answer {
            LockResponse::Lease(lease) => {
                self.observe(lease, now);
                if *request == LockRequest::Read {
                    self.count_own_record();
                    return self.decide(now);
                }
                self.confirm_write(request, sent, now);
                AttemptStep::End
            }
            LockResponse::Missing => {
                self.missing(now, wall).map_or(AttemptStep::End, AttemptStep::Send)
            }
            LockResponse::Conflict => {
                self.mark_stale();
                // A second read shows the winner; a second conflict waits for the next attempt.
                if self.reads < 2 { AttemptStep::Send(self.read()) } else { AttemptStep::End }
            }
            LockResponse::Failed => {
                // The write may have been executed: the next attempt reads first.
                self.mark_stale();
                if self.held.is_some() {
                    self.failing = self.failing.or(self.began);
                }
                AttemptStep::End
            }
        }
    }

    /// Returns the write that takes or renews the lease.
    pub(super) fn take(&self, _: LeadershipPermit, wall: Timestamp) -> Option<LockRequest> {
        self.observation.as_ref().map(|observation| self.write(observation, wall))
    }

    /// Returns the request that gives the Lease back, if the Lease is ours; the record must be
    /// current (else the request is a read).
    pub(in crate::leader) fn release(&mut self, wall: Timestamp) -> Option<LockRequest> {
        self.held = None;
        self.failing = None;
        let Some(observation) = self.observation.as_ref().filter(|observation| observation.current)
        else {
            return Some(LockRequest::Read);
        };
        // A process that finds the lock released writes at once, so a wait that is not over must
        // not be shortened by a release.
        if !self.is_ours(&observation.lease.record)
            || self.own_records.wait(&observation.lease.record).is_some()
        {
            return None;
        }
        let record = LeaderElectionRecord {
            holder: None,
            duration: RELEASED,
            acquired: Some(wall),
            renewed: Some(wall),
            // A request is made to a single holder, and ends with its term.
            requested_by: None,
            ..observation.lease.record.clone()
        };
        Some(LockRequest::Replace { version: observation.lease.version.clone(), record })
    }

    /// Takes in the answer to a request outside of an attempt, such as the request of
    /// [`release`](Self::release); returns true when nothing is left to do.
    pub(in crate::leader) fn released(
        &mut self,
        request: &LockRequest,
        answer: LockResponse,
        now: &ClockReading,
    ) -> bool {
        match answer {
            LockResponse::Lease(lease) => {
                self.observe(lease, now);
                *request != LockRequest::Read
            }
            // Without a Lease there is nothing to give back.
            LockResponse::Missing => true,
            LockResponse::Conflict | LockResponse::Failed => {
                self.mark_stale();
                false
            }
        }
    }

    /// Returns a read, and counts it.
    fn read(&mut self) -> LockRequest {
        self.reads += 1;
        LockRequest::Read
    }

    /// Stores a record that was read or written as the observed one.
    fn observe(&mut self, lease: ObservedRecord, now: &ClockReading) {
        self.missing = None;
        let held_for = self.seen().map_or(Duration::ZERO, |seen| seen.record.duration);
        let lasts = self.timing.lease_duration.max(held_for);
        self.own_records.note_version(&lease.version, lasts, now);
        if self.own_records.take_unheld(self.timing.lease_duration, now)
            && self.is_ours(&lease.record)
        {
            self.own_records.set_wait(&lease.record, None);
        }
        match &mut self.observation {
            // The same version was seen before: the time of first observation stays, because the
            // wait of a candidate counts from there.
            Some(observation) if observation.lease.version == lease.version => {
                observation.current = true
            }
            observation => *observation = Some(Observation { lease, first: *now, current: true }),
        }
    }

    /// Notes that the stored version may no longer be the observed version.
    pub(in crate::leader) fn mark_stale(&mut self) {
        if let Some(observation) = &mut self.observation {
            observation.current = false;
        }
    }

    /// Ends leadership, and keeps the reason for [`take_loss`](Self::take_loss).
    fn end_leadership(&mut self, loss: LossReason) {
        self.held = None;
        self.failing = None;
        self.tenure = None;
        self.lost = Some(loss);
    }

    /// Takes in the answer to a write of ours that was stored.
    fn confirm_write(&mut self, request: &LockRequest, sent: &ClockReading, now: &ClockReading) {
        if self.holder() != Some(&self.identity) {
            // Something between us and the store changed the holder, or the write left the holder
            // as before.
            return self.decide_loss();
        }
        // A write of another origin may leave the holder unchanged, and the holder may be another
        // process of this name: only a record that this process sent as its own makes this process
        // the leader.
        let record = match request {
            LockRequest::Create(record) | LockRequest::Replace { record, .. } => record,
            LockRequest::Read => return,
        };
        if !self.own_records.contains(record) {
            return;
        }
        if let Some(observation) = &self.observation
            && !self.is_ours(&observation.lease.record)
        {
            // The store may normalize a record: the stored form counts as ours, too.
            self.own_records.add(&observation.lease.record, self.own_records.wait(record));
        }
        let is_over = self.is_wait_over(now);
        // An answer that took longer than the lease lasts gives nothing; the next attempt renews.
        if remaining(&self.timing, sent, now).is_some() {
            (self.failing, self.unacknowledged) = (None, 0);
            if is_over {
                self.held = Some(*sent);
                let record = self.observation.as_ref().map(|observation| &observation.lease.record);
                self.tenure = record.and_then(|it| Some((it.acquired?, it.transitions)));
            }
        }
    }

    /// Whether the holder of a record of ours that was just stored may write.
    fn is_wait_over(&self, now: &ClockReading) -> bool {
        let Some(observation) = &self.observation else { return false };
        let record = &observation.lease.record;
        let Some(wait) = self.own_records.wait(record).map(|wait| wait.seen(observation.first))
        else {
            return true;
        };
        // A leader that recreates its lock while its validity lasts held the lock all the time: no
        // other process can have waited for long enough meanwhile.
        let is_led = self.held.is_some_and(|held| remaining(&self.timing, &held, now).is_some());
        let is_over = is_led || wait.left(now).is_none();
        self.own_records.set_wait(record, Some(wait).filter(|_| !is_over));
        is_over
    }

    /// Counts the record that was read if this process wrote the record and does not lead by it.
    fn count_own_record(&mut self) {
        let Some(observation) = self.observation.as_ref().filter(|_| self.held.is_none()) else {
            return;
        };
        let version = &observation.lease.version;
        if !self.is_ours(&observation.lease.record) {
            // The lock passed on, or may.
            self.unacknowledged = 0;
        } else if self.found.as_ref() != Some(version) {
            self.found = Some(version.clone());
            self.unacknowledged = self.unacknowledged.saturating_add(1);
        }
    }

    /// Ends leadership, if this process leads, in favour of the holder seen.
    fn decide_loss(&mut self) {
        if self.held.is_some() {
            let holder = self.holder().unwrap_or_default().to_owned();
            self.end_leadership(LossReason::Taken(holder));
        }
    }

    /// Decides, after the Lease was read, whether it may be renewed or taken.
    fn decide(&mut self, now: &ClockReading) -> AttemptStep {
        let Some(observation) = &self.observation else { return AttemptStep::End };
        let record = &observation.lease.record;
        let is_free = match record.holder.as_deref() {
            None => true,
            Some(_) if self.is_ours(record) => !self.yields_after_lost_answers(now),
            Some(_) if self.held.is_some() => {
                self.decide_loss();
                return AttemptStep::End;
            }
            Some(_) => self.unchanged(now) >= record.duration.max(self.timing.lease_duration),
        };
        if is_free { AttemptStep::Take(LeadershipPermit(())) } else { AttemptStep::End }
    }

    /// Whether this process wrote the record repeatedly without an answer that the record was
    /// stored. A process that cannot lead must not keep the lease from others that can: the lease
    /// is theirs as soon as it expires.
    fn yields_after_lost_answers(&self, now: &ClockReading) -> bool {
        let is_unacknowledged = self.held.is_none() && self.unacknowledged >= MOST_UNACKNOWLEDGED;
        is_unacknowledged && !self.is_over_for_others(now)
    }

    /// Whether the record was observed unchanged for its whole duration, and for as long as others
    /// need to read again.
    pub(super) fn is_over_for_others(&self, now: &ClockReading) -> bool {
        self.unchanged(now) >= self.timing.lease_duration + self.time_to_notice()
    }

    /// Time in which every other process reads the lock again.
    pub(super) fn time_to_notice(&self) -> Duration {
        self.timing.retry_period.mul_f64(2.0 * JITTER)
    }

    /// Time for which the record was seen unchanged, by a clock that does not count the machine's
    /// sleep.
    pub(super) fn unchanged(&self, now: &ClockReading) -> Duration {
        self.observation
            .as_ref()
            .map_or(Duration::ZERO, |observation| observation.first.steady_until(now))
    }

    /// Handles a Lease that does not exist: creates the Lease, unless its last holder is likely to
    /// do so. A lease duration passes before its holder may write: the holder of a deleted Lease
    /// may have renewed it until then, whatever this process observed.
    fn missing(&mut self, now: &ClockReading, wall: Timestamp) -> Option<LockRequest> {
        let since = *self.missing.get_or_insert(*now);
        let mut lasts = self.timing.lease_duration;
        if let Some(Observation { lease: ObservedRecord { record, .. }, .. }) = &self.observation {
            let is_of_another = record.holder.is_some() && !self.is_ours(record);
            // A last holder that still runs recreates its lock within a retry period.
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
        self.own_records.add(&record, Some(CreationWait::new(lasts)));
        Some(LockRequest::Create(record))
    }

    /// Whether this process wrote the record, even if the time of renewal was changed.
    pub(super) fn is_ours(&self, record: &LeaderElectionRecord) -> bool {
        // Another process of this name would have acquired the lock at another time.
        let tenure = record.acquired.map(|acquired| (acquired, record.transitions));
        let is_edited = self.tenure.is_some() && self.tenure == tenure;
        let is_known = self.own_records.contains(record) || is_edited;
        record.holder.as_deref() == Some(&self.identity) && is_known
    }

    /// Returns the wait of a lock that this process creates.
    fn wait(&self) -> CreationWait {
        CreationWait::new(self.timing.lease_duration)
    }

    /// Returns the write that takes or renews the lease.
    fn write(&self, observation: &Observation, wall: Timestamp) -> LockRequest {
        let old = &observation.lease.record;
        let ours = self.is_ours(old);
        let record = LeaderElectionRecord {
            holder: Some(self.identity.clone()),
            duration: self.timing.lease_duration,
            acquired: if ours { old.acquired } else { Some(wall) },
            renewed: Some(if ours { after(old.renewed, wall) } else { wall }),
            transitions: if ours { old.transitions } else { old.transitions.saturating_add(1) },
            // A process that takes the lease over has thereby answered every request.
            requested_by: old.requested_by.clone().filter(|_| ours),
            ..old.clone()
        };
        let wait = match ours {
            true => self.own_records.wait(old).map(|wait| wait.seen(observation.first)),
            // The lock was not given back: the lock was created, or emptied by hand, and its last
            // holder may still write.
            false if old.holder.is_none() && !old.is_released() => Some(self.wait()),
            false => None,
        };
        // The missing part of the lock is created, so the wait of a new lock applies.
        let wait = wait.or_else(|| observation.lease.is_partial.then(|| self.wait()));
        let wait = wait.or_else(|| self.own_records.restored());
        self.own_records.add(&record, wait);
        LockRequest::Replace { version: observation.lease.version.clone(), record }
    }
}

/// Returns a renewal time later than the last. Two renewals must differ even when the wall clock
/// stands still or is set back: a lock may distinguish versions by the text of the record alone.
/// A time of the far future, which only an edit can write, is not carried on.
fn after(last: Option<Timestamp>, wall: Timestamp) -> Timestamp {
    let near = wall.checked_add(LONGEST_LEAD).unwrap_or(wall);
    let next = last.and_then(|last| last.checked_add(jiff::SignedDuration::from_micros(1)).ok());
    next.filter(|next| *next <= near).map_or(wall, |next| next.max(wall))
}
