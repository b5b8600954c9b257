//! The environment of the framework besides sockets: time, randomness and metrics. A component that
//! needs one of them takes it from here.

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::metrics::Metrics;

/// The clock, seeded randomness and metrics of one operator; cheap to clone.
#[derive(Clone, Debug)]
pub struct Seams {
    /// Source of time.
    pub clock: Clock,
    /// Source of seeded randomness.
    pub entropy: Entropy,
    /// Metrics registry of this operator.
    pub metrics: Metrics,
}

impl Seams {
    /// Returns the machine's clock and randomness, and an empty metrics registry.
    pub fn system() -> Self {
        Self { clock: Clock::system(), entropy: Entropy::from_os(), metrics: Metrics::new() }
    }

    /// Returns the same environment with randomness forked for `component`.
    #[must_use]
    pub fn fork(&self, component: &str) -> Self {
        Self { entropy: self.entropy.fork(component), ..self.clone() }
    }
}

impl Default for Seams {
    fn default() -> Self {
        Self::system()
    }
}
