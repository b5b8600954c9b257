//! Randomness that a seed reproduces.
//!
//! Jitter, suffixes and choices draw their numbers here, never from the operating system directly.
//! The same seed gives the same numbers. Each component takes a [`fork`](Rng::fork), so that
//! one more draw in one component does not change the numbers of another.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// A seeded random number generator (SplitMix64); clones share its state. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng {
    state: Arc<Mutex<u64>>,
}

impl Rng {
    /// Returns a generator whose numbers follow from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self { state: Arc::new(Mutex::new(seed)) }
    }

    /// Returns a generator seeded by the operating system.
    pub fn from_os() -> Self {
        Self::seeded(std::collections::hash_map::RandomState::new().build_hasher().finish())
    }

    /// Returns a separate generator for `component`; its seed is derived from the next number of
    /// this one and the name.
    pub fn fork(&self, component: &str) -> Self {
        // FNV-1a: unlike the standard library's hasher, it gives the same number in every process.
        let name = component.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::seeded(self.next_u64() ^ name)
    }

    /// Returns the next number, uniform over all of `u64`.
    pub fn next_u64(&self) -> u64 {
        let mut state = self.state.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number in `[0, 1)`.
    pub fn unit(&self) -> f64 {
        // An f64 represents 53 bits exactly.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `bound`; 0 when `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// Returns a duration uniform in `[0, bound)` (full jitter).
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
