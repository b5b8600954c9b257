//! Contests for a part of an object that the operator keeps and others replace. Once a contest is
//! detected, the part is written seldom.

use std::time::Duration;

use tokio::time::Instant;

/// Times that others may replace the part before the contest is reported.
const MOST_LOSSES: u32 = 3;
/// Pause between two repairs of a part that others replace again and again.
const CONTESTED: Duration = Duration::from_secs(300);
/// Time in which replicas learn of new authorities.
const ROTATION: Duration = Duration::from_secs(90);
/// Time without a loss after which a contest is over.
const QUIET: Duration = Duration::from_secs(600);

/// State of the part of one object, as this process knows it.
#[derive(Debug)]
pub(super) struct KnownSetting<T> {
    /// Value that the object is to have.
    right: Option<T>,
    /// Whether the object had that value at the last look.
    is_right: bool,
    /// Number of replacements by others, in a series.
    losses: u32,
    /// First and last of these replacements.
    lost: Option<(Instant, Instant)>,
    /// The last repair.
    repaired: Option<Instant>,
    is_contested: bool,
}

impl<T> Default for KnownSetting<T> {
    fn default() -> Self {
        Self {
            right: None,
            is_right: false,
            losses: 0,
            lost: None,
            repaired: None,
            is_contested: false,
        }
    }
}

impl<T: Clone + PartialEq> KnownSetting<T> {
    /// Sets the right value; returns whether it differs from the one before. A new value starts
    /// without losses, so it is not contested.
    pub(super) fn expect(&mut self, right: &T) -> bool {
        let is_new = self.right.as_ref() != Some(right);
        if is_new {
            *self = Self { right: Some(right.clone()), ..Self::default() };
        }
        is_new
    }

    /// Notes that the object has the right value; returns whether a contest is over.
    pub(super) fn keep(&mut self, now: Instant) -> bool {
        self.is_right = true;
        let is_over = self.lost.is_some_and(|(_, last)| now - last > QUIET);
        if is_over {
            (self.losses, self.lost, self.is_contested) = (0, None, false);
        }
        is_over
    }

    /// Notes that the object has another value; returns whether it is contested since now.
    pub(super) fn lose(&mut self, now: Instant, is_at_url: bool) -> bool {
        if !self.is_right {
            return false;
        }
        self.is_right = false;
        self.losses += 1;
        let (first, _) = self.lost.unwrap_or((now, now));
        self.lost = Some((first, now));
        // Replicas differ for a minute after a rotation.
        let is_long = is_at_url || now - first >= ROTATION;
        let was_contested = self.is_contested;
        self.is_contested |= self.losses >= MOST_LOSSES && is_long;
        self.is_contested && !was_contested
    }

    /// Notes that the object has the value of another version of the operator, which decides.
    pub(super) fn leave(&mut self) {
        self.is_right = false;
        (self.losses, self.lost, self.is_contested) = (0, None, false);
    }

    /// Whether a wrong value is left alone for now.
    pub(super) fn is_left(&self, now: Instant, is_at_url: bool) -> bool {
        let is_soon = self.repaired.is_some_and(|repaired| now - repaired < CONTESTED);
        self.is_contested && (is_at_url || is_soon)
    }

    /// Notes a repair.
    pub(super) fn repaired(&mut self, now: Instant) {
        (self.is_right, self.repaired) = (true, Some(now));
    }
}
