//! Random choices of a seed: the same seed and number give the same choices everywhere.

/// A generator of random numbers: splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Returns the generator of a sequence of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03),
        );
        dice.next();
        dice
    }

    /// Returns the next number.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below a bound, which is not 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound.max(1)).unwrap_or(1);
        usize::try_from(self.next() % bound).unwrap_or_default()
    }

    /// Returns true in so many of a hundred cases.
    pub(super) fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// Returns a random thing of a list; `None` for an empty list.
    pub(super) fn of<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        things.get(self.below(things.len()))
    }

    /// Returns a random word of a list.
    pub(super) fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.of(words).copied().unwrap_or_default()
    }
}
