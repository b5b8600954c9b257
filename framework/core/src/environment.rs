//! The environment of the framework besides sockets: time, randomness and metrics. A component that
//! needs one of them takes it from here.

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::rng::Rng;

/// The clock, seeded randomness and metrics of one operator; cheap to clone.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Source of time.
    pub clock: Clock,
    /// Source of seeded randomness.
    pub rng: Rng,
    /// Metrics registry of this operator.
    pub metrics: Metrics,
}

impl Environment {
    /// Returns the machine's clock and randomness, and an empty metrics registry.
    pub fn system() -> Self {
        Self { clock: Clock::system(), rng: Rng::from_os(), metrics: Metrics::new() }
    }

    /// Returns the same environment with randomness forked for `component`.
    #[must_use]
    pub fn fork(&self, component: &str) -> Self {
        Self { rng: self.rng.fork(component), ..self.clone() }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::system()
    }
}
