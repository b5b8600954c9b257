//! How long a reflector waits after a failure.

use std::time::Duration;

use crate::entropy::Entropy;

/// Bound of the first pause; client-go's reflector waits as long.
const FIRST: Duration = Duration::from_millis(800);
/// Largest bound of a pause.
const LARGEST: Duration = Duration::from_secs(30);
/// A stream that was open so long was healthy: the next failure is a first one.
const HEALTHY: Duration = Duration::from_secs(120);

/// Exponential pauses with full jitter: the bound doubles and never decreases until a stream was
/// healthy; the pause is anything below the bound, so that many clients do not come back as one.
#[derive(Debug)]
pub(crate) struct Backoff {
    bound: Duration,
    entropy: Entropy,
}

impl Backoff {
    pub(crate) fn new(entropy: Entropy) -> Self {
        Self { bound: FIRST, entropy }
    }

    /// The next pause, after a stream that was open for `lived`.
    pub(crate) fn pause(&mut self, lived: Duration) -> Duration {
        if lived >= HEALTHY {
            self.bound = FIRST;
        }
        let pause = self.entropy.jitter(self.bound);
        self.bound = (self.bound * 2).min(LARGEST);
        pause
    }

    /// A random part of `span`, without counting a failure.
    pub(crate) fn jitter(&self, span: Duration) -> Duration {
        self.entropy.jitter(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_half_a_minute_and_start_again_after_a_healthy_stream() {
        let mut backoff = Backoff::new(Entropy::seeded(1));
        let mut bound = FIRST;
        for _ in 0..9 {
            assert!(backoff.pause(Duration::from_secs(119)) < bound);
            bound = (bound * 2).min(LARGEST);
        }
        let longest = (0..50).map(|_| backoff.pause(Duration::ZERO)).max().unwrap();
        assert!(longest > Duration::from_secs(20) && longest < LARGEST, "{longest:?}");
        assert!(backoff.pause(HEALTHY) < FIRST);
    }
}
