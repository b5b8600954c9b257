//! Consequences of an attempt's end: the next attempt, and the pause before it.

use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use super::absence::{Absence, FIRST_UNCONFIRMED_PAUSE, PAUSE, UNCONFIRMED_PAUSE};
use super::action::NextAction;
use super::attempt_end::{AttemptEnd, EXPIRED};
use super::phase::{ListDue, Phase};
use super::{LONGEST_RETRY_AFTER, Machine, RetryStreak};
use crate::reflector::ReflectorState;

impl Machine {
    /// Applies the consequences of an attempt that ended at `now`, after a stream that was open for
    /// `open_for`.
    pub(in crate::reflector) fn ended(
        &mut self,
        end: AttemptEnd,
        open_for: Duration,
        now: Instant,
    ) -> NextAction {
        self.streak = self.streak.filter(|streak| streak.includes(&end));
        let named_version = self.break_off();
        match end {
            // After `Unsupported` the cause stays: the list is the same, by another request.
            AttemptEnd::Ended | AttemptEnd::Unsupported(_) => NextAction::AtOnce,
            AttemptEnd::NewEpoch => self.list_again("new_epoch"),
            AttemptEnd::RelistDue => self.list_again("in_part"),
            AttemptEnd::Failed(why) => self.failed(why, open_for),
            AttemptEnd::Internal(why) => self.internal(why, open_for, now),
            AttemptEnd::Stale { cause, .. } if named_version => self.list_consistent(cause),
            AttemptEnd::Stale { cause, why } => self.stale(cause, why, open_for, now),
            AttemptEnd::Throttled { after, why } => {
                let pause = self.pause(open_for);
                // The random pause is added to the server's, so that the server's clients do not
                // return together.
                let pause = pause + after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
                self.wait(ReflectorState::Retrying(why), pause)
            }
            AttemptEnd::Refused { why, .. } => {
                let pause = self.pause(open_for);
                self.wait(ReflectorState::Degraded(why), pause)
            }
            AttemptEnd::Panicked(_) => {
                // The progress before the panic is unknown, so everything is read anew.
                self.list_again("panicked");
                let pause = self.pause(open_for);
                self.wait(
                    ReflectorState::Degraded("reading panicked; see the log".to_owned()),
                    pause,
                )
            }
            AttemptEnd::Unconfirmed(why) => {
                let pause = self.unconfirmed_pause();
                self.wait(ReflectorState::Retrying(why), pause)
            }
            AttemptEnd::Absent(why) => self.absent(why),
        }
    }

    /// Ends a list under way, which is not complete; returns whether the list named a version.
    fn break_off(&mut self) -> bool {
        let Phase::Listing(list) = &self.phase else { return false };
        let named_version = list.version.is_some();
        self.phase = Phase::ListDue(mem::take(&mut self.phase).into_list_due());
        named_version
    }

    /// Makes a list precede the next watch, at once.
    pub(super) fn list_again(&mut self, cause: &'static str) -> NextAction {
        let due = mem::take(&mut self.phase).into_list_due();
        self.phase = Phase::ListDue(ListDue { cause, ..due });
        NextAction::AtOnce
    }

    /// Makes a list that named a version again as a consistent read, at once (mechanism 51).
    fn list_consistent(&mut self, cause: &'static str) -> NextAction {
        let due = mem::take(&mut self.phase).into_list_due();
        self.phase = Phase::ListDue(ListDue { cause, needs_consistent: true, ..due });
        NextAction::AtOnce
    }

    /// Resumes from the same version, if there is any.
    fn failed(&mut self, why: String, open_for: Duration) -> NextAction {
        let state = match &mut self.phase {
            Phase::ListDue(due) => {
                // After `MOST_BROKEN_STREAMS` of these the next list is made in pages.
                due.broken_streams = due.broken_streams.saturating_add(1);
                // B4 (lists that expire before they end): a list that fails as a whole may work as
                // a stream or in pages.
                if mem::take(&mut due.unpaged) {
                    due.broken_streams = 0;
                }
                due.failed(why)
            }
            _ => ReflectorState::Retrying(why),
        };
        let pause = self.pause(open_for);
        self.wait(state, pause)
    }

    /// Handles an internal error: resumes, or lists again after `internal_errors_for`.
    fn internal(&mut self, why: String, open_for: Duration, now: Instant) -> NextAction {
        let since = match self.streak {
            Some(RetryStreak::Internal(since)) => since,
            _ => now,
        };
        self.streak = Some(RetryStreak::Internal(since));
        let window = self.options.internal_errors_for;
        // Without a position a list follows anyway.
        if self.resume().is_some() && window.is_some_and(|window| now - since >= window) {
            self.streak = None;
            self.list_again("internal_error");
        }
        self.failed(why, open_for)
    }

    /// Handles a version that cannot be used any more.
    fn stale(
        &mut self,
        cause: &'static str,
        why: String,
        open_for: Duration,
        now: Instant,
    ) -> NextAction {
        if cause == EXPIRED && self.may_list_at_once(now) {
            self.list_again(cause);
            return NextAction::ListAtOnce(why);
        }
        let state = match &mut self.phase {
            Phase::ListDue(due) => due.failed(why),
            _ => ReflectorState::Retrying(why),
        };
        let pause = self.pause(open_for);
        self.list_again(cause);
        self.wait(state, pause)
    }

    /// Returns whether an expired watch is listed again at once (B2: 410 in the middle of a watch).
    /// An expired version is not a failure, and a pause would only make the view older. False if
    /// the last such list followed shortly before: a server that forgets faster than the reflector
    /// reads is listed with the pauses of a failing server.
    fn may_list_at_once(&mut self, now: Instant) -> bool {
        let is_first = self.expired_at.is_none_or(|at| now >= at + self.options.healthy_after);
        let may = is_first && self.resume().is_some();
        if may {
            self.expired_at = Some(now);
        }
        may
    }

    /// Marks the kind as absent. The target is emptied once, and again only if a list showed
    /// objects since or another failure was reported.
    fn absent(&mut self, why: String) -> NextAction {
        let mut due = mem::take(&mut self.phase).into_list_due();
        let before = due.absence.take();
        let empties = before.as_ref().is_none_or(|absence| !absence.is_emptied);
        let absence = Absence::new(why.clone(), before);
        let bound = absence.longest_pause();
        self.phase = Phase::ListDue(ListDue { cause: "absent", absence: Some(absence), ..due });
        self.streak = None;
        // Half of the pause is random, so that many reflectors do not ask at the same time.
        let pause = bound / 2 + self.backoff.jitter(bound / 2);
        NextAction::Wait { state: ReflectorState::Absent(why), pause, empties }
    }

    /// Reports a failure of another kind than absence.
    fn wait(&mut self, state: ReflectorState, pause: Duration) -> NextAction {
        if let Some(absence) = self.phase.due_mut().and_then(|due| due.absence.as_mut()) {
            absence.is_emptied = false;
        }
        NextAction::Wait { state, pause, empties: false }
    }

    /// Returns the pause after a failure. For an absent kind the pause is at most [`PAUSE`], even
    /// if the server fails in another way meanwhile.
    fn pause(&mut self, open_for: Duration) -> Duration {
        let pause = self.backoff.pause(open_for);
        if self.is_absent() { pause.min(PAUSE) } else { pause }
    }

    /// Returns the pause before a request that checks a 404.
    fn unconfirmed_pause(&self) -> Duration {
        let pause =
            if self.newest().is_some() { UNCONFIRMED_PAUSE } else { FIRST_UNCONFIRMED_PAUSE };
        pause / 2 + self.backoff.jitter(pause)
    }
}
