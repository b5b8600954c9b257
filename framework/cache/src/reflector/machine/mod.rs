//! State machine of a reflector, without I/O: the next request, the meaning of the arriving data,
//! and the consequences of an attempt's end. The time is handed in; randomness comes from the
//! seeded source.
//!
//! An attempt asks [`Machine::next_read`] for the request, reports the progress of lists and
//! streams, and ends with an [`AttemptEnd`]. [`Machine::ended`] turns that into a [`NextAction`]:
//! the next attempt at once, or the state to report and the pause before the next attempt.
//!
//! | phase | from | by |
//! |---|---|---|
//! | `ListDue` (starting) | | a new reflector; the first list has the cause `initial` |
//! | `Listing`, in pages | `ListDue` | `list_begins`; a page after the first changes nothing |
//! | `Listing`, by a stream | `ListDue` | the same, while streaming lists are supported and fewer than two in a row broke |
//! | `Listing`, whole | `Listing` | `pages_expired`, then `list_begins`: pages expire while they are read |
//! | `Watching` | `Listing` | `list_ended`: the last page, or the bookmark that ends the initial events |
//! | `Watching` | `Watching` | an end or failure after which the watch is resumed from its position |
//! | `ListDue` (expired) | `Watching` | `Stale`: at once for the first 410 in a while, else after a pause |
//! | `ListDue` (consistent) | `Listing` | `Stale` for a list that named a version: at once, without a version |
//! | `ListDue` (failed) | `Listing` | any other end; the counters of earlier attempts go on |
//! | `ListDue` (absent) | any | `Absent`: discovery is asked every 5 s, and a list is tried unless discovery says no |
//! | `ListDue` (set back) | `Listing`, `Watching` | `epoch_ended`: versions went backwards, so the position is forgotten |
//! | `ListDue` (anew) | any | `Panicked`, `RelistDue`, internal errors for too long |
//!
//! Backing off is no phase: the backoff is the pause of a [`NextAction::Wait`], before an attempt
//! in the phase that the end has left. A missing right (401, 403) is such a pause, too, with a
//! state that names the right. A 404 is checked with discovery
//! before it counts as an absence ([`NotFound`]). The check whether
//! the store was set back ([`RollbackCheck`]) goes on beside an open watch. A stopped reflector has
//! no phase: the reflector's future is dropped.

// DESIGN.md, 113: The reflector decides in a machine without I/O

mod absence;
mod action;
mod attempt_end;
mod backoff;
mod consequences;
mod phase;
mod position;
mod request;
mod rollback;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::mem;
use std::time::Duration;

use tokio::time::Instant;

use self::absence::UNCONFIRMED_LIMIT;
use self::backoff::ReflectorBackoff;
use self::phase::{Incomplete, ListDue, Listing, Phase, Watching};
use self::position::Position;
use super::{ReflectorOptions, ReflectorState, Served, StreamProgress};
use crate::store::order;
use windlass_core::rng::Rng;

pub(super) use absence::NotFound;
pub(super) use action::{ListFigures, ListVerdict, NextAction};
pub(super) use attempt_end::{AttemptEnd, EndedRequest, judge};
pub(super) use rollback::RollbackCheck;

/// Longest pause that a server can ask for by `Retry-After`.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Time after which a partially read list is made again.
const IN_PART_PAUSE: Duration = Duration::from_secs(300);

/// State of a reflector.
#[derive(Debug)]
pub(super) struct Machine {
    /// Options of the reflector; fixed during the run.
    options: ReflectorOptions,
    /// Randomness of pauses and timeouts.
    rng: Rng,
    /// The phase, by the table above.
    phase: Phase,
    /// The newest version that was seen, from which a watch resumes.
    position: Position,
    /// Bound of the next pause.
    backoff: ReflectorBackoff,
    /// Set while all attempts end with an internal error, or all with a 404.
    streak: Option<RetryStreak>,
    /// Time of the last expired watch after which the list followed at once.
    expired_at: Option<Instant>,
    /// Whether the server paged a list that could have been answered from memory.
    pages_any_version: bool,
}

/// An unbroken streak of ends of the same kind, and the time of the first end.
#[derive(Clone, Copy, Debug)]
enum RetryStreak {
    /// Internal errors.
    Internal(Instant),
    /// 404 for a kind whose absence is not believed yet.
    NotFound(Instant),
}

impl RetryStreak {
    /// Returns whether the streak goes on after `end`.
    fn includes(self, end: &AttemptEnd) -> bool {
        match self {
            Self::Internal(_) => matches!(end, AttemptEnd::Internal(_)),
            // A panic says nothing about the kind; a believed 404 ends the streak anyway.
            Self::NotFound(_) => matches!(
                end,
                AttemptEnd::Unconfirmed(_) | AttemptEnd::Absent(_) | AttemptEnd::Panicked(_)
            ),
        }
    }
}

impl Machine {
    /// Creates the machine of a reflector that has seen nothing.
    pub(super) fn new(options: &ReflectorOptions, rng: Rng) -> Self {
        Self {
            options: options.clone(),
            phase: Phase::default(),
            position: Position::default(),
            backoff: ReflectorBackoff::new(options, rng.clone()),
            rng,
            streak: None,
            expired_at: None,
            pages_any_version: false,
        }
    }

    /// Returns the position, for logs.
    pub(super) fn position(&self) -> impl fmt::Debug {
        &self.position
    }

    /// Returns the newest version seen in this epoch.
    pub(super) fn newest(&self) -> Option<&str> {
        self.position.newest()
    }

    /// Returns the version to watch from; `None` when a list must come first.
    pub(super) fn resume(&self) -> Option<&str> {
        match self.phase {
            Phase::Watching(_) => self.position.newest(),
            _ => None,
        }
    }

    /// Returns whether the kind is not served.
    pub(super) fn is_absent(&self) -> bool {
        self.phase.due().is_some_and(|due| due.absence.is_some())
    }
}

/// Progress of lists.
impl Machine {
    /// Begins a list that asks for `version`; returns its cause.
    pub(super) fn list_begins(&mut self, version: Option<String>, now: Instant) -> &'static str {
        let due = mem::take(&mut self.phase).into_list_due();
        let cause = due.cause;
        self.phase = Phase::Listing(Listing {
            due,
            // Needed at the list's end: only a consistent read proves that the store was set back.
            version,
            began: now,
            items: 0,
            counted: 0,
            unreadable: 0,
            logged_unexpected: false,
        });
        cause
    }

    /// Notes that another page follows.
    pub(super) fn page_follows(&mut self) {
        // A server that pages such a list reads the storage, regardless of the named version.
        if matches!(&self.phase, Phase::Listing(list) if list.version.as_deref() == Some("0")) {
            self.pages_any_version = true;
        }
    }

    /// Notes that the position between two pages has expired: the list is made again, without a
    /// limit (B4: lists that expire before they end).
    pub(super) fn pages_expired(&mut self) {
        let due = mem::take(&mut self.phase).into_list_due();
        self.phase = Phase::ListDue(ListDue { unpaged: true, cause: "expired_page", ..due });
    }

    /// Counts an item of the list under way.
    pub(super) fn count_item(&mut self) {
        if let Phase::Listing(list) = &mut self.phase {
            list.items += 1;
        }
    }

    /// Counts an item of the list under way that is left out. No list is under way when a watch
    /// shows such an object.
    pub(super) fn count_unreadable(&mut self) {
        if let Phase::Listing(list) = &mut self.phase {
            list.unreadable += 1;
        }
    }

    /// Returns the items of the list under way, so far.
    pub(super) fn items(&self) -> u64 {
        if let Phase::Listing(list) = &self.phase { list.items } else { 0 }
    }

    /// Returns the number of items since the last call.
    pub(super) fn take_uncounted_items(&mut self) -> u64 {
        let Phase::Listing(list) = &mut self.phase else { return 0 };
        list.items - mem::replace(&mut list.counted, list.items)
    }

    /// Returns whether an object of another kind is the first since the list began.
    pub(super) fn is_first_unexpected(&mut self) -> bool {
        let logged = match &mut self.phase {
            Phase::ListDue(_) => return false,
            Phase::Listing(list) => &mut list.logged_unexpected,
            Phase::Watching(watching) => &mut watching.logged_unexpected,
        };
        !mem::replace(logged, true)
    }

    /// Judges a list that ends with `version`. `shows_older` is called for a consistent read, and
    /// returns whether the list has shown an object in an older state than the state already passed
    /// to the sink: the store was set back then, even if versions have passed the position since.
    pub(super) fn judge_list(
        &self,
        version: &str,
        shows_older: impl FnOnce() -> bool,
    ) -> ListVerdict {
        // Without a list under way nothing may be taken for deleted.
        let Phase::Listing(list) = &self.phase else {
            return ListVerdict::Complete(StreamProgress::ListedInPart);
        };
        let is_consistent = list.version.is_none();
        if let Some(newest) = self.position.newest()
            && (order(version, newest) == Some(Ordering::Less) || (is_consistent && shows_older()))
        {
            // Only a consistent read proves that the store was set back (B8: versions that go
            // back); any other list is made again as a consistent read.
            let newest = newest.to_owned();
            return match is_consistent {
                true => ListVerdict::SetBack { had: newest },
                false => ListVerdict::Older { newest },
            };
        }
        // A partial list cannot show which objects are gone; a later list may.
        ListVerdict::Complete(match list.unreadable {
            0 => StreamProgress::Listed,
            _ => StreamProgress::ListedInPart,
        })
    }

    /// Ends a list that is complete as of `version`; the watch follows.
    pub(super) fn list_ended(&mut self, version: &str, now: Instant) -> Option<ListFigures> {
        let Phase::Listing(list) = &self.phase else { return None };
        let figures = ListFigures { items: list.items, took: now - list.began };
        let incomplete = Incomplete { items: list.unreadable, relist_at: now + IN_PART_PAUSE };
        self.phase = Phase::Watching(Watching {
            list_began: list.began,
            incomplete: Some(incomplete).filter(|incomplete| incomplete.items > 0),
            logged_unexpected: list.logged_unexpected,
        });
        self.position.begin(version);
        // A list says nothing about the watches' internal errors, so their streak continues.
        self.streak = self.streak.filter(|streak| matches!(streak, RetryStreak::Internal(_)));
        Some(figures)
    }

    /// Forgets all versions, because the store was set back and another epoch begins.
    pub(super) fn epoch_ended(&mut self) {
        self.position.forget();
        self.list_again("new_epoch");
    }
}

/// Progress of watches.
impl Machine {
    /// Notes that a stream is about to be opened at the present position.
    pub(super) fn stream_opens(&mut self) {
        self.position.open();
    }

    /// Advances the position to `version`; false when that is not newer.
    pub(super) fn advance(&mut self, version: &str) -> bool {
        self.position.advance(version)
    }

    /// Returns whether a watch that shows this version repeats itself.
    pub(super) fn has_passed(&self, version: &str) -> bool {
        self.position.has_passed(version)
    }

    /// Returns whether a state of this version precedes the beginning of the stream, so that no
    /// server has to send the state.
    pub(super) fn is_before_stream(&self, version: &str) -> bool {
        self.position.is_before_stream(version)
    }

    /// Returns the state of a reflector that follows changes: healthy, unless deletions may have
    /// been missed.
    pub(super) fn watching_state(&self) -> ReflectorState {
        let Some(Incomplete { items, .. }) = self.incomplete() else {
            return ReflectorState::Watching;
        };
        ReflectorState::Degraded(format!(
            "{items} items could not be taken: deletions may be missed"
        ))
    }

    /// Returns the time of the next list, if the last list was complete in part only.
    pub(super) fn relist_at(&self) -> Option<Instant> {
        self.incomplete().map(|incomplete| incomplete.relist_at)
    }

    fn incomplete(&self) -> Option<Incomplete> {
        match &self.phase {
            Phase::Watching(watching) => watching.incomplete,
            _ => None,
        }
    }

    /// Returns the time at which the list began that the watch continues.
    pub(super) fn list_began(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Watching(watching) => Some(watching.list_began),
            _ => None,
        }
    }
}

/// Kinds that are not served.
impl Machine {
    /// Takes in whether discovery has the absent kind; returns the end of the attempt if a list
    /// would be in vain.
    pub(super) fn discovery_response(&mut self, served: Option<Served>) -> Option<AttemptEnd> {
        self.phase.due_mut()?.absence.as_mut()?.discovery_response(served)
    }

    /// Returns the treatment of a 404 that came before `now`. A 404 empties the cache, so cached
    /// objects are given up only when discovery does not have the kind either, or when the server
    /// keeps answering 404. At the very first list a 404 lets controllers start without the kind:
    /// there the 404 is not believed while discovery has the kind, and without discovery the 404
    /// must come twice.
    pub(super) fn not_found(&mut self, now: Instant) -> NotFound {
        let since = match self.streak {
            Some(RetryStreak::NotFound(since)) => Some(since),
            _ => None,
        };
        if self.is_absent() || since.is_some_and(|since| now >= since + UNCONFIRMED_LIMIT) {
            return NotFound::Confirmed;
        }
        self.streak = Some(RetryStreak::NotFound(since.unwrap_or(now)));
        NotFound::Unconfirmed { is_repeated: since.is_some() && self.newest().is_none() }
    }
}
