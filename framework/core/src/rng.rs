//! Randomness that a seed reproduces.
//!
//! Jitter, suffixes and choices draw their numbers here, never from the operating system directly.
//! The same seed gives the same numbers. Each component takes a [`fork`](Rng::fork), so that one
//! more draw in a component does not change the numbers of another.
//!
//! Invariant: a generator is a 64-bit state and nothing else, so that a seed, the names of the
//! forks and the order of the draws determine every number. Clones share the state under a short
//! lock, which is never held across another call.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use windlass::rng::Rng;
//!
//! let draw = |seed| {
//!     let rng = Rng::seeded(seed);
//!     (rng.fork("queue").next_u64(), rng.fork("client").next_u64())
//! };
//! assert_eq!(draw(7), draw(7));
//! assert_ne!(draw(7), draw(8));
//! ```

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// A seeded random number generator (SplitMix64); clones share the state. Not for secrets.
///
/// A clone draws from the same sequence: a number that a clone returned does not come again from
/// another. Components that must not disturb each other take a [`fork`](Self::fork) instead.
///
/// Default of an operator: [`from_os`](Self::from_os); of a test cluster: seed 1.
#[derive(Clone, Debug)]
pub struct Rng {
    /// State of SplitMix64; each draw adds the golden ratio to the state, so every state occurs
    /// once per period of 2^64 draws.
    state: Arc<Mutex<u64>>,
}

impl Rng {
    /// Returns a generator whose numbers follow from `seed`.
    ///
    /// Every seed is usable, 0 included.
    pub fn seeded(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(seed)) }
    }

    /// Returns a generator seeded by the operating system.
    ///
    /// The seed comes from the keys of the standard library's `RandomState`, which the operating
    /// system fills; this needs neither a file nor a system call in each call.
    pub fn from_os() -> Self {
        Self::seeded(std::collections::hash_map::RandomState::new().build_hasher().finish())
    }

    /// Returns a separate generator for `component`; the fork's seed is derived from the next
    /// number of this generator and the name.
    ///
    /// The fork takes a number of this generator. Two forks of the same name therefore differ, and
    /// the order of forks matters: a component that forks earlier changes the numbers of later
    /// forks, a component that draws more from its own fork does not.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use windlass::rng::Rng;
    ///
    /// let (one, other) = (Rng::seeded(1), Rng::seeded(1));
    /// let (queue, same) = (one.fork("queue"), other.fork("queue"));
    /// assert_eq!(queue.next_u64(), same.next_u64());
    /// // The second fork of the same name is another generator.
    /// assert_ne!(one.fork("queue").next_u64(), queue.next_u64());
    /// ```
    pub fn fork(&self, component: &str) -> Self {
        // FNV-1a: unlike the standard library's hasher, this hash gives the same number in every
        // process.
        let name = component.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::seeded(self.next_u64() ^ name)
    }

    /// Returns the state, from which [`restore`](Self::restore) goes on.
    #[doc(hidden)]
    pub fn state(&self) -> u64 {
        *self.state.lock()
    }

    /// Replaces the state, of all clones.
    #[doc(hidden)]
    pub fn restore(&self, state: u64) {
        *self.state.lock() = state;
    }

    /// Returns the next number, uniform over all of `u64`.
    pub fn next_u64(&self) -> u64 {
        // The addition and the read of the new state are a single step: two clones that draw at the
        // same time would otherwise return the same number.
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `[0, 1)`.
    ///
    /// The result has 53 random bits: all multiples of 2^-53 below 1 occur, with equal probability.
    pub fn unit(&self) -> f64 {
        // An f64 represents 53 bits exactly.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    ///
    /// The remainder of a division: for a bound far below 2^64, as in all uses here, the bias is
    /// negligible.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// Returns a duration uniform in `[0, bound)` (full jitter).
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use std::time::Duration;
    /// use windlass::rng::Rng;
    ///
    /// let bound = Duration::from_secs(2);
    /// assert!(Rng::seeded(3).jitter(bound) < bound);
    /// assert_eq!(Rng::seeded(3).jitter(Duration::ZERO), Duration::ZERO);
    /// ```
    pub fn jitter(&self, bound: Duration) -> Duration {
        bound.mul_f64(self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (a, b) = (Rng::seeded(7), Rng::seeded(7));
        assert_eq!(
            (0..9).map(|_| a.next_u64()).collect::<Vec<_>>(),
            (0..9).map(|_| b.next_u64()).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_restored_state_goes_on_as_the_generator_of_the_state() {
        let one = Rng::seeded(7);
        one.next_u64();
        let (state, other) = (one.state(), Rng::seeded(0));
        other.restore(state);
        assert_eq!(one.next_u64(), other.next_u64());
    }

    #[test]
    fn forks_of_different_names_differ() {
        let (a, b) = (Rng::seeded(7).fork("a"), Rng::seeded(7).fork("b"));
        assert_ne!(a.next_u64(), b.next_u64());
    }

    #[test]
    fn unit_stays_below_one() {
        let rng = Rng::seeded(1);
        assert!((0..10_000).map(|_| rng.unit()).all(|x| (0.0..1.0).contains(&x)));
    }
}
