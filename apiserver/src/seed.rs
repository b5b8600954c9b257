//! Randomness from a seed: uids, name suffixes, tokens.
//!
//! SHA-256 in counter mode, so that a fixed seed repeats a whole run and an unknown seed cannot be
//! guessed from the output. Nothing else in the server draws random numbers.

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

/// A seeded source of random bytes.
#[derive(Debug)]
pub(crate) struct Rng {
    state: Mutex<State>,
}

/// The key, and the number of blocks drawn.
#[derive(Debug)]
struct State {
    key: [u8; 32],
    counter: u64,
}

/// Letters and digits of generated names: no vowels and no characters that look alike.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Rng {
    /// Returns a source that repeats with the same seed.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::keyed(Sha256::digest(seed.to_be_bytes()).into())
    }

    /// Returns a source that repeats with the same seed and the same number of an earlier write: a
    /// server that continues with stored data must not give the uids of the first start again.
    pub(crate) fn seeded_after(seed: u64, revision: u64) -> Self {
        let parts = [seed.to_be_bytes(), revision.to_be_bytes()].concat();
        Self::keyed(Sha256::digest(parts).into())
    }

    /// Returns a source with a seed from the operating system.
    pub(crate) fn system() -> Self {
        let mut key = [0; 32];
        if rustls::crypto::ring::default_provider().secure_random.fill(&mut key).is_err() {
            tracing::warn!("the operating system gives no randomness; uids will repeat");
        }
        Self::keyed(key)
    }

    /// Returns a source with a key.
    fn keyed(key: [u8; 32]) -> Self {
        Self { state: Mutex::new(State { key, counter: 0 }) }
    }

    /// Returns 32 random bytes.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let mut state = self.state.lock();
        // Under the lock: each block is drawn once.
        state.counter += 1;
        let mut hash = Sha256::new();
        hash.update(state.key);
        hash.update(state.counter.to_be_bytes());
        hash.finalize().into()
    }

    /// Returns a number below `bound` (0 gives 0).
    pub(crate) fn below(&self, bound: u64) -> u64 {
        let bytes = self.bytes();
        let mut head = [0; 8];
        head.copy_from_slice(&bytes[..8]);
        // Slightly uneven for large bounds; the bounds of this server are small.
        u64::from_be_bytes(head).checked_rem(bound).unwrap_or(0)
    }

    /// Returns a version 4 uid.
    pub(crate) fn uid(&self) -> String {
        let bytes = self.bytes();
        let mut id = [0; 16];
        id.copy_from_slice(&bytes[..16]);
        // Version and variant of RFC 4122.
        id[6] = (id[6] & 0x0f) | 0x40;
        id[8] = (id[8] & 0x3f) | 0x80;
        let hex = |part: &[u8]| part.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let parts = [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]];
        parts.map(hex).join("-")
    }

    /// Returns five characters for `generateName`.
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
        let (a, b, c) = (Rng::seeded(7), Rng::seeded(7), Rng::seeded(8));
        let (first, second) = (a.uid(), a.uid());
        assert_ne!(first, second);
        assert_eq!((b.uid(), b.uid()), (first.clone(), second));
        assert_ne!(c.uid(), first);
        assert_eq!((first.len(), &first[14..15]), (36, "4"));
    }

    #[test]
    fn suffixes_hold_no_vowel() {
        let rng = Rng::seeded(1);
        for _ in 0..100 {
            let suffix = rng.suffix();
            assert_eq!(suffix.len(), 5);
            assert!(!suffix.contains(['a', 'e', 'i', 'o', 'u', '0', '1', '3']), "{suffix}");
        }
    }
}
