//! The three things through which the framework touches the world besides sockets: time,
//! randomness and metrics. A component that needs one of them takes it from here.

use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::metrics::Metrics;

/// Clock, seeded randomness and metrics of one operator; cheap to clone.
#[derive(Clone, Debug)]
pub struct Seams {
    /// Time.
    pub clock: Clock,
    /// Seeded randomness.
    pub entropy: Entropy,
    /// Metrics registry of this operator.
    pub metrics: Metrics,
}

impl Seams {
    /// The machine's clock and randomness, and an empty metrics registry.
    pub fn system() -> Self {
        Self { clock: Clock::system(), entropy: Entropy::from_os(), metrics: Metrics::new() }
    }

    /// The same seams with randomness forked for `component`.
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
