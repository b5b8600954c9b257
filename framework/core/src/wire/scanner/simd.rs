//! Search for the structural marks of JSON in 64 bytes at once: quotes, backslashes, brackets.
//!
//! A cache scans every byte of every list to find the ends of objects, which is the largest cost of
//! a cache. The loops are written so that compilers turn them into vector instructions, 16 bytes at
//! a time; there are no intrinsics and no `unsafe`.
//!
//! Gathering one bit of each of 64 bytes in their order takes an instruction that only some
//! processors have. In [`Spread`] order the gathering takes no instruction, and everything needed
//! can be computed there: bit `8 b + w` stands for byte `b` of word `w` of the eight words in the
//! block.
//!
//! Splitting a list takes 25 200 instructions per pod of 8.4 KB this way, and 65 200 byte by byte
//! (`tests/instructions`).

/// Bytes that are scanned together.
pub(in crate::wire) const BLOCK: usize = 64;

/// A bit per byte of a block, in spread order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::wire) struct Spread(pub(in crate::wire) u64);

/// Positions of the structural marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) struct Marks {
    /// `"`, escaped ones included.
    pub(in crate::wire) quotes: Spread,
    /// `{` and `[`.
    pub(in crate::wire) opens: Spread,
    /// `}` and `]`.
    pub(in crate::wire) closes: Spread,
}

impl Marks {
    /// Finds the marks of a block.
    #[inline]
    pub(in crate::wire) fn of(block: &[u8; BLOCK]) -> Self {
        // With this bit set `[` is `{` and `]` is `}`, and nothing else is.
        const FOLD: u8 = 0x20;
        Self {
            quotes: equal(block, b'"', 0),
            opens: equal(block, b'{', FOLD),
            closes: equal(block, b'}', FOLD),
        }
    }
}

/// Returns the positions of the backslashes.
pub(in crate::wire) fn backslashes(block: &[u8; BLOCK]) -> Spread {
    equal(block, b'\\', 0)
}

/// Returns the positions of opening and closing braces.
#[inline]
pub(in crate::wire) fn braces(block: &[u8; BLOCK]) -> (Spread, Spread) {
    (equal(block, b'{', 0), equal(block, b'}', 0))
}

/// For each byte the bit of its word.
const BITS: [u8; BLOCK] = {
    let mut bits = [0; BLOCK];
    let mut at = 0;
    while at < BLOCK {
        bits[at] = 1 << (at / 8);
        at += 1;
    }
    bits
};

/// Returns the bytes that equal `wanted` once the bits of `fold` are set in them, in a dozen and a
/// half instructions.
#[inline]
fn equal(block: &[u8; BLOCK], wanted: u8, fold: u8) -> Spread {
    let mut hits = [0; BLOCK];
    for at in 0..BLOCK {
        hits[at] = if block[at] | fold == wanted { BITS[at] } else { 0 };
    }
    let (lanes, _) = hits.as_chunks::<16>();
    let both = lanes.iter().fold(0, |all, lane| all | u128::from_le_bytes(*lane));
    Spread(both as u64 | (both >> 64) as u64)
}

impl Spread {
    /// Converts between spread order and the order of the bytes, where bit 0 is the first; the
    /// conversion is the inverse of itself.
    #[inline]
    pub(in crate::wire) fn swapped(bits: u64) -> u64 {
        // Transposes a square of eight by eight bits.
        let mut bits = bits;
        for (distance, mask) in
            [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
        {
            let differ = (bits ^ (bits >> distance)) & mask;
            bits ^= differ ^ (differ << distance);
        }
        bits
    }

    /// Returns the bits in the order of the bytes: bit 0 is the first.
    pub(in crate::wire) fn in_order(self) -> u64 {
        Self::swapped(self.0)
    }

    /// Builds a set from bits in the order of the bytes.
    pub(in crate::wire) fn from_order(bits: u64) -> Self {
        Self(Self::swapped(bits))
    }

    /// Returns the bits of some of the eight words.
    #[inline]
    pub(in crate::wire) fn words(self, first: usize, count: usize) -> Self {
        let words = ((1_u64 << count) - 1) << first;
        Self(self.0 & (words * 0x0101_0101_0101_0101))
    }

    /// Adds the opening marks in `self` and the closing marks to `depth`, if the depth stays above
    /// zero in any order of the marks. Returns whether the depth did.
    #[inline]
    pub(in crate::wire) fn balance(self, closes: Self, depth: &mut u32) -> bool {
        let closed = closes.0.count_ones();
        let stays = closed < *depth;
        if stays {
            *depth = depth.saturating_add(self.0.count_ones()) - closed;
        }
        stays
    }

    /// Returns for each byte whether an odd number of bits is set up to and including this byte:
    /// from quotes this computes the bytes between them. `open` says whether the first byte is
    /// already between two quotes; the returned flag says the same for the byte behind the block.
    #[inline]
    pub(in crate::wire) fn between(self, open: bool) -> (Self, bool) {
        let mut bits = self.0;
        // Along each word ...
        for step in [8, 16, 32] {
            bits ^= bits << step;
        }
        // ... and from word to word, by the parity of each.
        let mut totals = bits >> 56;
        for step in [1, 2, 4] {
            totals ^= totals << step;
        }
        totals = totals << 1 ^ if open { 0x1ff } else { 0 };
        let before = (totals & 0xff).wrapping_mul(0x0101_0101_0101_0101);
        (Self(bits ^ before), totals >> 8 & 1 == 1)
    }
}

/// Returns the bytes with an odd number of backslashes before them, in the order of the bytes.
/// `first` says whether that holds for the first byte; the returned flag says so for the byte
/// behind the block.
pub(in crate::wire) fn escaped(backslashes: u64, first: bool) -> (u64, bool) {
    /// The bits at even places.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let first = u64::from(first);
    // A backslash that is escaped escapes nothing.
    let escapes = backslashes & !first;
    let follows = escapes << 1 | first;
    // Runs that begin at odd places: adding carries a bit through to the place behind each.
    let odd_starts = escapes & !EVEN & !follows;
    let (ends, carry) = odd_starts.overflowing_add(escapes);
    ((EVEN ^ (ends << 1)) & follows, carry)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive(block: &[u8; BLOCK]) -> Marks {
        let bits = |wanted: &[u8]| {
            let bit = |at: usize| u64::from(wanted.contains(&block[at])) << (8 * (at % 8) + at / 8);
            Spread((0..BLOCK).map(bit).sum())
        };
        Marks { quotes: bits(b"\""), opens: bits(b"{["), closes: bits(b"}]") }
    }

    #[test]
    fn every_byte_is_classified_at_every_position() {
        for byte in 0..=u8::MAX {
            for other in [0, b'"', b'z', 0xff] {
                for at in 0..BLOCK {
                    let mut block = [other; BLOCK];
                    block[at] = byte;
                    assert_eq!(Marks::of(&block), naive(&block), "{byte} among {other}");
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_bytes_comes_and_goes() {
        for at in 0..BLOCK {
            assert_eq!(Spread(1 << (8 * (at % 8) + at / 8)).in_order(), 1 << at);
            assert_eq!(Spread::from_order(1 << at).in_order(), 1 << at);
        }
    }

    proptest! {
        #[test]
        fn what_is_between_quotes_begins_with_the_first_and_ends_before_the_second(
            quotes in any::<u64>(), rare in any::<u64>(), open in any::<bool>(),
        ) {
            for quotes in [quotes, quotes & rare, quotes & rare & rare.rotate_left(7)] {
                let mut is_between = open;
                let mut expected = 0;
                for at in 0..BLOCK {
                    is_between ^= quotes >> at & 1 == 1;
                    expected |= u64::from(is_between) << at;
                }
                let (between, next) = Spread::from_order(quotes).between(open);
                prop_assert_eq!((between.in_order(), next), (expected, is_between));
            }
        }

        #[test]
        fn escapes_are_counted_over_blocks(
            bytes in prop::collection::vec(prop::sample::select(b"\\\\\\x".to_vec()), 0..200),
        ) {
            let mut before = false;
            let naive: Vec<bool> = bytes
                .iter()
                .map(|byte| {
                    let is_escaped = before;
                    before = *byte == b'\\' && !is_escaped;
                    is_escaped
                })
                .collect();
            let mut carry = false;
            let mut seen = Vec::new();
            for chunk in bytes.chunks(BLOCK) {
                let bit = |(at, byte): (usize, &u8)| u64::from(*byte == b'\\') << at;
                let backslashes = chunk.iter().enumerate().map(bit).sum();
                let (escaped, next) = super::escaped(backslashes, carry);
                carry = next;
                seen.extend((0..chunk.len()).map(|at| escaped >> at & 1 == 1));
            }
            prop_assert_eq!(seen, naive);
        }
    }
}
