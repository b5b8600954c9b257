//! Backoff of a reflector after failures.

use std::time::Duration;

use crate::reflector::ReflectorOptions;
use windlass_core::rng::Rng;

/// Exponential pauses with full jitter: the bound doubles and never decreases until a stream was
/// healthy; the pause is uniform below the bound, so that many clients do not return at the same
/// time.
#[derive(Debug)]
pub(super) struct ReflectorBackoff {
    /// Upper bound of the next pause: between `first` and `largest`.
    bound: Duration,
    /// Bound of the first pause after a success or a healthy stream; option `first_pause`.
    first: Duration,
    /// Limit of the bound, however many failures follow each other; option `largest_pause`.
    largest: Duration,
    /// Time after which an open stream counts as healthy: the next failure is a first failure.
    healthy_after: Duration,
    /// Source of the jitter; tests give it a fixed seed.
    rng: Rng,
}

impl ReflectorBackoff {
    /// Creates a backoff without failures; the bounds are those of `options`.
    pub(super) fn new(options: &ReflectorOptions, rng: Rng) -> Self {
        let ReflectorOptions { first_pause: first, largest_pause: largest, healthy_after, .. } =
            *options;
        Self { bound: first, first, largest, healthy_after, rng }
    }

    /// Returns the next pause, after a stream that was open for `open_for`.
    ///
    /// The bound doubles with each call, also when the drawn pause was short: the growth depends on
    /// the number of failures only.
    pub(super) fn pause(&mut self, open_for: Duration) -> Duration {
        if open_for >= self.healthy_after {
            self.reset();
        }
        let pause = self.rng.jitter(self.bound);
        self.bound = self.bound.saturating_mul(2).min(self.largest);
        pause
    }

    /// Makes the next pause a first pause.
    ///
    /// For a success that is no open stream, such as an answered version read.
    pub(super) fn reset(&mut self) {
        self.bound = self.first;
    }

    /// Returns a random part of `span`, without counting a failure.
    pub(super) fn jitter(&self, span: Duration) -> Duration {
        self.rng.jitter(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(options: &ReflectorOptions) -> ReflectorBackoff {
        ReflectorBackoff::new(options, Rng::seeded(1))
    }

    #[test]
    fn pauses_grow_to_half_a_minute_and_start_again_after_a_healthy_stream() {
        let (first, largest) = (Duration::from_millis(800), Duration::from_secs(30));
        let mut backoff = backoff(&ReflectorOptions::new());
        let mut bound = first;
        for _ in 0..9 {
            assert!(backoff.pause(Duration::from_secs(119)) < bound);
            bound = (bound * 2).min(largest);
        }
        let longest = (0..50).map(|_| backoff.pause(Duration::ZERO)).max().unwrap();
        assert!(longest > Duration::from_secs(20) && longest < largest, "{longest:?}");
        assert!(backoff.pause(Duration::from_secs(120)) < first);
    }

    /// Upstream's row 74: custom bounds of the backoff.
    #[test]
    fn mechanism_48_a_backoff_of_ones_own_is_respected() {
        let seconds = Duration::from_secs;
        let options =
            ReflectorOptions::new().backoff(seconds(3), seconds(6)).backoff_reset(seconds(20));
        let mut backoff = backoff(&options);
        let longest = |backoff: &mut ReflectorBackoff, open_for: Duration| {
            (0..200).map(|_| backoff.pause(open_for)).max().unwrap()
        };
        let healthy = longest(&mut backoff, seconds(20));
        assert!((seconds(2)..seconds(3)).contains(&healthy), "{healthy:?}");
        let failing = longest(&mut backoff, seconds(19));
        assert!((seconds(5)..seconds(6)).contains(&failing), "{failing:?}");
    }

    /// Jitter spreads reflectors that make requests at fixed intervals.
    #[test]
    fn a_jitter_is_any_part_of_its_span_and_counts_no_failure() {
        let mut backoff = backoff(&ReflectorOptions::new());
        let span = Duration::from_secs(10);
        let parts: Vec<_> = (0..100).map(|_| backoff.jitter(span)).collect();
        assert!(parts.iter().all(|part| *part < span), "{parts:?}");
        for half in [Duration::ZERO..span / 2, span / 2..span] {
            assert!(parts.iter().any(|part| half.contains(part)), "{parts:?}");
        }
        assert!(backoff.pause(Duration::ZERO) < Duration::from_millis(800));
    }
}
