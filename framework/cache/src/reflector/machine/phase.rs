//! Phases of a reflector, each with the data that has a meaning only in that phase.

use tokio::time::Instant;

use super::absence::Absence;
use crate::reflector::ReflectorState;

/// Number of failed lists in a row after which the reflector is degraded.
///
/// Fewer failures are common when pages expire or a server restarts; they are reported as retries.
const MOST_FAILED_LISTS: u32 = 5;

/// Phase of a reflector.
#[derive(Debug)]
pub(super) enum Phase {
    /// A list precedes the next watch.
    ListDue(ListDue),
    /// A list is under way, in pages or as the first part of a stream.
    Listing(Listing),
    /// A list is complete: the following watch is open, or is about to be opened or resumed.
    Watching(Watching),
}

/// A list that precedes the next watch, and the results of the attempts since the last complete
/// list.
#[derive(Debug)]
pub(super) struct ListDue {
    /// Cause of the list, a label of metrics.
    pub(super) cause: &'static str,
    /// Whether the last version cannot be listed from, so that the list is a consistent read.
    pub(super) needs_consistent: bool,
    /// Whether pages expire faster than they are read: the list is made without a limit.
    pub(super) unpaged: bool,
    /// Number of streaming lists in a row that ended before their end mark.
    pub(super) broken_streams: u32,
    /// Number of failed lists in a row.
    pub(super) failed_lists: u32,
    /// Set while the kind is not served.
    pub(super) absence: Option<Absence>,
}

/// A list under way.
#[derive(Debug)]
pub(super) struct Listing {
    /// The attempts before this one, which count until a list is complete.
    pub(super) due: ListDue,
    /// The version that the list asked for; `None` is a consistent read.
    pub(super) version: Option<String>,
    /// Time at which the list began. The duration of the list counts from here; the start time also
    /// decides whether a rollback notice is newer than this list.
    pub(super) began: Instant,
    pub(super) items: u64,
    /// Number of items that the metrics include.
    pub(super) counted: u64,
    /// Number of items that could not be read or are of another kind. While there are some, no
    /// object counts as deleted.
    pub(super) unreadable: usize,
    /// Whether objects of another kind were logged.
    pub(super) logged_unexpected: bool,
}

/// A watch that continues a complete list.
#[derive(Debug)]
pub(super) struct Watching {
    /// Time at which the list began.
    pub(super) list_began: Instant,
    /// Set if the list left out items.
    pub(super) incomplete: Option<Incomplete>,
    /// Whether objects of another kind were logged, since the list began.
    pub(super) logged_unexpected: bool,
}

/// A list that left out items, so that deletions may be missed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incomplete {
    /// Number of items that the list left out.
    pub(super) items: usize,
    /// Time of the next list, which may be complete.
    pub(super) relist_at: Instant,
}

impl Default for Phase {
    /// A new reflector begins with a list, whose cause is `initial`.
    fn default() -> Self {
        Self::ListDue(ListDue::of("initial"))
    }
}

impl Phase {
    /// Ends the phase for a phase in which a list is due. Keeps the failure counters of an
    /// unfinished list and clears them after a complete list. The caller sets the cause.
    pub(super) fn into_list_due(self) -> ListDue {
        match self {
            Self::ListDue(due) => due,
            Self::Listing(list) => list.broken_off(),
            Self::Watching(_) => ListDue::of("initial"),
        }
    }

    /// Returns the attempts at a list; `None` when the last list is complete.
    pub(super) fn due(&self) -> Option<&ListDue> {
        match self {
            Self::ListDue(due) | Self::Listing(Listing { due, .. }) => Some(due),
            Self::Watching(_) => None,
        }
    }

    /// The same, for changes.
    pub(super) fn due_mut(&mut self) -> Option<&mut ListDue> {
        match self {
            Self::ListDue(due) | Self::Listing(Listing { due, .. }) => Some(due),
            Self::Watching(_) => None,
        }
    }
}

impl ListDue {
    /// Returns a list without earlier attempts.
    ///
    /// The flags start anew: a page that expired, or a stream without the end mark, says nothing
    /// about a list that begins after a complete list.
    fn of(cause: &'static str) -> Self {
        Self {
            cause,
            needs_consistent: false,
            unpaged: false,
            broken_streams: 0,
            failed_lists: 0,
            absence: None,
        }
    }

    /// Counts a failed list; returns the state, which is degraded after `MOST_FAILED_LISTS` in a
    /// row (B4: lists that expire before they end).
    pub(super) fn failed(&mut self, why: String) -> ReflectorState {
        self.failed_lists = self.failed_lists.saturating_add(1);
        let times = self.failed_lists;
        if times < MOST_FAILED_LISTS {
            return ReflectorState::Retrying(why);
        }
        ReflectorState::Degraded(format!("the list has failed {times} times in a row: {why}"))
    }
}

impl Listing {
    /// Ends the list before the list is complete. The shown objects remain valid, so that a kind
    /// that is absent later is emptied again.
    fn broken_off(self) -> ListDue {
        let mut due = self.due;
        if let Some(absence) = due.absence.as_mut().filter(|_| self.items > 0) {
            absence.is_emptied = false;
        }
        due
    }
}
