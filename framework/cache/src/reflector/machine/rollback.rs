//! Decision when the version of the server's store is read, to learn whether the store was set
//! back, and the meaning of that version.
//!
//! ```text
//! Settled  -- lost connection, hint, report of another reflector --> Due
//! Due      -- a watch is open, and the pause is over ------------> Reading
//! Reading  -- the read failed --------------------------------> Due, after a pause
//! Reading  -- a lost connection: the read may be of the store before it --> Due
//! Reading  -- the version is not below a known one, or a list was complete --> Settled
//! ```

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{LONGEST_RETRY_AFTER, ReflectorBackoff};
use crate::reflector::ReflectorOptions;
use crate::store::order;
use windlass_core::rng::Rng;

/// Shortest interval between version reads that a mere hint causes: repeated frames and slow
/// answers to writes happen on healthy stores, too.
const MIN_HINT_INTERVAL: Duration = Duration::from_secs(120);

/// A suspicion that the server's store was set back, and the version read that resolves the
/// suspicion; `L` is the future of the read.
pub(in crate::reflector) struct RollbackCheck<L> {
    /// Current step; the diagram of the module has the transitions.
    step: CheckState<L>,
    /// A version that the store had, perhaps of another kind, beside the reflector's own.
    had: Option<Arc<str>>,
    /// Pauses between version reads that fail; reset by a read that finds no version lost.
    backoff: ReflectorBackoff,
    /// Time of the last version read that a hint caused.
    hint_at: Option<Instant>,
    /// Time of the last report, of this or another reflector, that the store was set back.
    reported_at: Option<Instant>,
}

/// Step of the check.
enum CheckState<L> {
    /// There is no suspicion.
    Settled,
    /// The next version read begins at this time, or with the next open watch.
    Due(Instant),
    /// A version read is in flight.
    Reading {
        /// The position when the read began.
        position: String,
        /// The future of the read. A drop ends the read.
        read: L,
    },
}

impl<L> RollbackCheck<L> {
    /// Creates a check without a suspicion; failed reads pause as `options` say.
    pub(in crate::reflector) fn new(options: &ReflectorOptions, rng: Rng) -> Self {
        Self {
            step: CheckState::Settled,
            had: None,
            backoff: ReflectorBackoff::new(options, rng),
            hint_at: None,
            reported_at: None,
        }
    }

    /// Notes that the store may have been set back before `now`. A read that began earlier
    /// may have been answered before the store was set back, and ends.
    pub(in crate::reflector) fn request_check(&mut self, now: Instant) {
        self.step = CheckState::Due(now);
    }

    /// Notes a hint that has only two causes: a store that was set back, or a network that repeats
    /// frames.
    pub(in crate::reflector) fn hint(&mut self, now: Instant) {
        let is_early = self.hint_at.is_some_and(|last| now < last + MIN_HINT_INTERVAL);
        // A read that is due or in flight answers this hint, too.
        if !is_early && matches!(self.step, CheckState::Settled) {
            self.hint_at = Some(now);
            self.request_check(now);
        }
    }

    /// Notes that the store was found to be set back at `now`, by this reflector.
    pub(in crate::reflector) fn found(&mut self, now: Instant) {
        self.reported_at = Some(now);
    }

    /// Takes in the report of another reflector that the store was set back at `found_at`, and
    /// `had` a version before. A list that began later has already checked this.
    pub(in crate::reflector) fn peer_report(
        &mut self,
        (found_at, had): (Instant, Arc<str>),
        list_began: Instant,
        now: Instant,
    ) {
        if self.reported_at.is_some_and(|reported| reported >= found_at) {
            return;
        }
        self.reported_at = Some(found_at);
        if list_began <= found_at {
            self.request_check(now);
            self.had = Some(had);
        }
    }

    /// Ends the suspicion, because a list has resolved it.
    ///
    /// Also ends a read in flight. `hint_at` and `reported_at` remain, so that a hint or a report
    /// of the same event does not raise the suspicion again.
    pub(in crate::reflector) fn resolve(&mut self) {
        (self.step, self.had) = (CheckState::Settled, None);
    }

    /// Returns the time of the next version read, if one is due.
    pub(in crate::reflector) fn due(&self) -> Option<Instant> {
        match self.step {
            CheckState::Due(at) => Some(at),
            _ => None,
        }
    }

    /// Returns the version read in flight.
    pub(in crate::reflector) fn read(&mut self) -> Option<&mut L> {
        match &mut self.step {
            CheckState::Reading { read, .. } => Some(read),
            _ => None,
        }
    }

    /// Returns whether a version read is in flight.
    pub(in crate::reflector) fn is_reading(&self) -> bool {
        matches!(self.step, CheckState::Reading { .. })
    }

    /// Begins a version read. The position advances meanwhile; the result is compared with
    /// `position`.
    pub(in crate::reflector) fn begin(&mut self, position: &str, read: L) {
        self.step = CheckState::Reading { position: position.to_owned(), read };
    }

    /// Schedules another read after a failed read, which proves nothing. `asked` is the pause that
    /// the server asked for.
    pub(in crate::reflector) fn failed(&mut self, asked: Option<Duration>, now: Instant) {
        let pause = self.backoff.pause(Duration::ZERO);
        self.request_check(now + pause + asked.unwrap_or_default().min(LONGEST_RETRY_AFTER));
    }

    /// Takes in the store's version; returns the known version above the store's version, if there
    /// is any.
    ///
    /// The position at the beginning of the read is compared, not the current position: frames that
    /// arrive during the read would exceed a version that was read before them.
    pub(in crate::reflector) fn compare(&mut self, version: &str) -> Option<String> {
        let is_below = |known: &&str| order(version, known) == Some(Ordering::Less);
        let position = match &self.step {
            CheckState::Reading { position, .. } => Some(position.as_str()).filter(is_below),
            _ => None,
        };
        let known = position.or_else(|| self.had.as_deref().filter(is_below)).map(str::to_owned);
        if known.is_none() {
            // The pauses begin anew after a successful read.
            self.backoff.reset();
        }
        self.resolve();
        known
    }
}
