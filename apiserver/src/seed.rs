//! Randomness from a seed: uids, name suffixes, tokens.
//!
//! SHA-256 in counter mode, so a fixed seed repeats a whole run and an unknown one cannot be guessed
//! from what it produced. Nothing else in the server draws random numbers.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// A seeded source of random bytes.
#[derive(Debug)]
pub(crate) struct Entropy {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    key: [u8; 32],
    counter: u64,
}

/// Letters and digits of generated names: no vowels, nothing that looks like another.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Entropy {
    /// Repeats with the same seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::keyed(Sha256::digest(seed.to_be_bytes()).into())
    }

    /// From the operating system.
    pub(crate) fn system() -> Self {
        let mut key = [0; 32];
        if rustls::crypto::ring::default_provider().secure_random.fill(&mut key).is_err() {
            tracing::warn!("the operating system gives no randomness; uids will repeat");
        }
        Self::keyed(key)
    }

    fn keyed(key: [u8; 32]) -> Self {
        Self { state: Mutex::new(State { key, counter: 0 }) }
    }

    /// 32 random bytes.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let mut state = self.state.lock();
        state.counter += 1;
        let mut hash = Sha256::new();
        hash.update(state.key);
        hash.update(state.counter.to_be_bytes());
        hash.finalize().into()
    }

    /// A number below `bound` (0 gives 0).
    pub(crate) fn below(&self, bound: u64) -> u64 {
        let bytes = self.bytes();
        let mut head = [0; 8];
        head.copy_from_slice(&bytes[..8]);
        u64::from_be_bytes(head).checked_rem(bound).unwrap_or(0)
    }

    /// A version 4 uid.
    pub(crate) fn uid(&self) -> String {
        let bytes = self.bytes();
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[..16]);
        id[6] = (id[6] & 0x0f) | 0x40;
        id[8] = (id[8] & 0x3f) | 0x80;
        let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
        parts.map(hex).join("-")
    }

    /// Five characters for `generateName`.
    pub(crate) fn suffix(&self) -> String {
        let bytes = self.bytes();
        let pick = |byte: &u8| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]);
        bytes[..5].iter().map(pick).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_uids_and_another_seed_others() {
        let (a, b, c) = (Entropy::seeded(7), Entropy::seeded(7), Entropy::seeded(8));
        let (first, second) = (a.uid(), a.uid());
        assert_ne!(first, second);
        assert_eq!((b.uid(), b.uid()), (first.clone(), second));
        assert_ne!(c.uid(), first);
        assert_eq!((first.len(), &first[14..15]), (36, "4"));
    }

    #[test]
    fn suffixes_hold_no_vowel() {
        let entropy = Entropy::seeded(1);
        for _ in 0..100 {
            let suffix = entropy.suffix();
            assert_eq!(suffix.len(), 5);
            assert!(!suffix.contains(['a', 'e', 'i', 'o', 'u', '0', '1', '3']), "{suffix}");
        }
    }
}
