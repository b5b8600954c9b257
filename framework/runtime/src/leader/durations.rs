//! Durations of an election, and the rules by which they are safe together.

use std::time::Duration;

/// Waits between attempts are stretched by up to this factor, so that candidates spread out.
pub(crate) const JITTER: f64 = 1.2;
/// Least validity that is worth a request.
pub(super) const MIN_VALIDITY: Duration = Duration::from_secs(1);
/// Exclusive upper bound of every duration: the seconds that fit into a Lease.
const LONGEST: Duration = Duration::from_secs(i32::MAX as u64);

/// Durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct LeaseDurations {
    #[doc(hidden)]
    pub lease_duration: Duration,
    #[doc(hidden)]
    pub renew_deadline: Duration,
    #[doc(hidden)]
    pub retry_period: Duration,
    /// Time before the end of the lease at which writes stop.
    #[doc(hidden)]
    pub margin: Duration,
}

impl Default for LeaseDurations {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            margin: Duration::from_secs(2),
        }
    }
}

impl LeaseDurations {
    /// Returns the margin that lets clocks differ as much as with the defaults, as far as the other
    /// durations leave room.
    pub(super) fn usual_margin(&self) -> Duration {
        let retry = self.retry_period.checked_mul(6).map_or(Duration::MAX, |six| six / 5);
        let used = self.renew_deadline.saturating_add(retry);
        let room = self.lease_duration.saturating_sub(used);
        (self.lease_duration / 15).saturating_mul(2).min(room).max(Self::default().margin)
    }

    /// Time that a successful renewal lets the holder write, counted from before the request was
    /// sent.
    pub(crate) fn validity(&self) -> Duration {
        self.lease_duration.saturating_sub(self.margin)
    }

    /// Longest time that a request of an attempt may take.
    pub fn request_limit(&self) -> Duration {
        // Half of the renew deadline: after a first request without an answer there is time for a
        // second.
        (self.renew_deadline / 2).max(Duration::from_secs(1))
    }

    /// Checks the durations; returns the broken rule and the correction.
    pub(super) fn check(&self) -> Result<(), String> {
        let whole_seconds =
            self.lease_duration.subsec_nanos() == 0 && self.lease_duration.as_secs() >= 1;
        if !whole_seconds {
            return Err(format!(
                "the lease duration is {:?}, but a Lease holds whole seconds, at least one",
                self.lease_duration
            ));
        }
        if self.lease_duration.as_secs() > i32::MAX as u64 {
            return Err("the lease duration does not fit into a Lease".to_owned());
        }
        if self.retry_period.is_zero() {
            return Err("the retry period is zero".to_owned());
        }
        if self.retry_period >= LONGEST || self.renew_deadline >= LONGEST || self.margin >= LONGEST
        {
            return Err("a duration is longer than a Lease can last".to_owned());
        }
        let longest_wait = self.retry_period.mul_f64(JITTER);
        if longest_wait >= self.renew_deadline {
            return Err(format!(
                "the retry period with its jitter ({longest_wait:?}) must be shorter than the renew \
                 deadline ({:?}), or no renewal could be tried twice; raise the renew deadline",
                self.renew_deadline
            ));
        }
        if self.margin.is_zero() {
            return Err(
                "the margin is zero, so two replicas could write at once as soon as their clocks \
                        differ at all; leave the margin out, or set it to the largest clock \
                        difference plus the duration of a request"
                    .to_owned(),
            );
        }
        let needed = self.renew_deadline + longest_wait + self.margin;
        if needed > self.lease_duration {
            return Err(format!(
                "renew deadline + retry period with its jitter + margin ({needed:?}) must not exceed \
                 the lease duration ({:?}), or another replica could lead while this one still \
                 writes; raise the lease duration to at least {} s",
                self.lease_duration,
                needed.as_secs_f64().ceil()
            ));
        }
        let between = longest_wait + MIN_VALIDITY;
        if self.validity() < between {
            return Err(format!(
                "lease duration - margin ({:?}) must last from one renewal to the next ({between:?}), \
                 or writes would be refused in between; raise the lease duration",
                self.validity()
            ));
        }
        Ok(())
    }
}
