//! The environment of the framework besides sockets: time, randomness and metrics. A component that
//! needs time, randomness or metrics takes them from here.
//!
//! Invariant: no component reads the system's clock, the operating system's randomness or a global
//! registry directly. A test that replaces the three fields replaces every source of difference
//! between runs, except the network.

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::rng::Rng;

/// The clock, seeded randomness and metrics of an operator; cheap to clone.
///
/// A client, and therefore each operator, has an environment. Clones share clock, randomness and
/// metrics.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::clock::Clock;
/// use windlass::environment::Environment;
/// use windlass::metrics::Metrics;
/// use windlass::rng::Rng;
///
/// // An environment whose randomness is the same in every run.
/// let environment =
///     Environment { clock: Clock::system(), rng: Rng::seeded(42), metrics: Metrics::new() };
/// let queue = environment.fork("queue");
/// assert_ne!(queue.rng.next_u64(), environment.rng.next_u64());
/// ```
#[derive(Clone, Debug)]
pub struct Environment {
    /// Source of time.
    ///
    /// All waits, deadlines and time stamps of the framework come from the clock.
    pub clock: Clock,
    /// Source of seeded randomness.
    ///
    /// Jitter, suffixes and choices. Take a [`fork`](Rng::fork) for each component.
    pub rng: Rng,
    /// Metrics registry of this operator.
    ///
    /// Never a global registry: two operators in a process have two registries.
    pub metrics: Metrics,
}

impl Environment {
    /// Returns the system's clock and randomness, and an empty metrics registry.
    ///
    /// The default of a client. Each call returns an environment with a new registry.
    pub fn system() -> Self {
        Self { clock: Clock::system(), rng: Rng::from_os(), metrics: Metrics::new() }
    }

    /// Returns the same environment with randomness forked for `component`.
    ///
    /// Clock and metrics stay shared. The call takes a number of this environment's randomness.
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
