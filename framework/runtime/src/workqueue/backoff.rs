//! The backoff of failed keys.

use std::time::Duration;

/// Policy for retries of failed keys: after a delay drawn uniformly below a bound that doubles with
/// every failure in a row (full jitter), for ever or a number of times.
///
/// The *bound* never decreases until a success resets it; the delay drawn below the bound may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct RetryPolicy {
    base: Duration,
    cap: Duration,
    limit: Option<u32>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::forever()
    }
}

impl RetryPolicy {
    /// Returns a policy that never gives up; the bound grows from 5 ms to 5 min.
    pub fn forever() -> Self {
        Self { base: Duration::from_millis(5), cap: Duration::from_secs(300), limit: None }
    }

    /// Returns a policy that gives up after `retries` retries in a row: the key is then idle until
    /// the next add. Failures with a chosen delay ([`Work::retry_after`](super::Work::retry_after))
    /// are not counted.
    pub fn at_most(retries: u32) -> Self {
        Self { limit: Some(retries), ..Self::forever() }
    }

    /// Lets the bound grow from `base` to `cap`; a `cap` below `base` counts as `base`. Default:
    /// from 5 ms to 5 min.
    pub fn between(mut self, base: Duration, cap: Duration) -> Self {
        self.base = base;
        self.cap = cap.max(base);
        self
    }

    /// Returns the bound of the delay after `failures` failures in a row (0 counts as 1); `None`
    /// when the policy gives up.
    pub fn bound(&self, failures: u32) -> Option<Duration> {
        if self.limit.is_some_and(|limit| failures > limit) {
            return None;
        }
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(self.base.saturating_mul(factor).min(self.cap))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let policy = RetryPolicy::forever();
        let bounds: Vec<_> =
            (1..=18).map(|n| policy.bound(n).expect("never gives up").as_millis()).collect();
        assert_eq!(bounds[..5], [5, 10, 20, 40, 80]);
        assert_eq!(bounds[16..], [300_000, 300_000]);
    }

    #[test]
    fn huge_failure_counts_stay_at_the_cap() {
        let policy = RetryPolicy::forever();
        for failures in [31, 32, 33, 64, 1000, u32::MAX] {
            assert_eq!(policy.bound(failures), Some(Duration::from_secs(300)), "{failures}");
        }
    }

    #[test]
    fn a_limited_policy_gives_up_after_its_retries() {
        let policy = RetryPolicy::at_most(2);
        assert!(policy.bound(2).is_some());
        assert_eq!(policy.bound(3), None);
    }

    #[test]
    fn a_cap_below_the_base_is_the_base() {
        let (base, cap) = (Duration::from_secs(2), Duration::from_secs(1));
        assert_eq!(RetryPolicy::forever().between(base, cap).bound(9), Some(base));
    }
}
