//! Hashes of keys and of index values, seeded per store so that users who choose names cannot make
//! them collide.
//!
//! The order of hashes is never visible: results are in key order.

use hashbrown::HashTable;

/// The hash function of a store.
///
/// Not a cryptographic hash: hashes never leave the process.
#[derive(Clone, Copy)]
pub(crate) struct Hasher {
    /// Start of every state; odd, hence never zero.
    seed: u64,
}

/// An odd number without pattern (the golden ratio's digits).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher {
    /// Creates a hash function; equal seeds give equal hashes.
    pub(crate) fn new(seed: u64) -> Self {
        // Never zero: with a zero seed, a zero word would hide all earlier words.
        Self { seed: fold(seed ^ SPREAD, SPREAD) | 1 }
    }

    /// Returns the hash of a text.
    pub(crate) fn text(self, text: &str) -> Hash {
        Hash(narrow(self.bytes(self.seed, text.as_bytes())))
    }

    /// Returns the hash of a key's parts.
    ///
    /// A key without a namespace hashes as a key with an empty namespace; the comparison of keys
    /// separates them.
    pub(crate) fn parts(self, namespace: Option<&str>, name: &str) -> Hash {
        let state = self.bytes(self.seed, namespace.unwrap_or_default().as_bytes());
        Hash(narrow(self.bytes(state, name.as_bytes())))
    }

    /// Mixes bytes into a state, eight at a time.
    fn bytes(self, mut state: u64, bytes: &[u8]) -> u64 {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            state = fold(state ^ u64::from_le_bytes(*word), SPREAD ^ self.seed);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // With the length: "a" and "a\0" have the same padded word.
        fold(state ^ u64::from_le_bytes(last), SPREAD ^ bytes.len() as u64)
    }
}

/// Folds the two halves of a product: every bit of both factors takes part.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Returns the upper half, into which all bits of the product have been mixed.
fn narrow(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A hash that is small enough to be kept beside the key: a table grows without reading keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u32);

impl Hash {
    /// Spreads the bits, as the table uses the highest and the lowest bits.
    fn wide(self) -> u64 {
        u64::from(self.0).wrapping_mul(SPREAD)
    }
}

/// A map from hashed keys to their numbers in a slab.
///
/// Keys are not kept: a lookup compares with the objects in the slab, through a closure.
#[derive(Default)]
pub(crate) struct Ids {
    /// The hash stands beside the number, so that growing and most mismatches touch no object.
    table: HashTable<(Hash, u32)>,
}

impl Ids {
    /// Returns the number with that hash for which `is_it` returns true.
    pub(crate) fn find(&self, hash: Hash, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.table.find(hash.wide(), |(other, id)| *other == hash && is_it(*id));
        found.map(|(_, id)| *id)
    }

    /// Adds a number; the number must not be there yet.
    pub(crate) fn insert(&mut self, hash: Hash, id: u32) {
        self.table.insert_unique(hash.wide(), (hash, id), |(hash, _)| hash.wide());
    }

    /// Removes a number that was inserted with this hash; others are ignored.
    pub(crate) fn remove(&mut self, hash: Hash, id: u32) {
        if let Ok(entry) = self.table.find_entry(hash.wide(), |(_, other)| *other == id) {
            entry.remove();
        }
        // A table that shrank must not keep the memory of the peak.
        if self.table.len() < self.table.capacity() / 4 {
            self.table.shrink_to(2 * self.table.len(), |(hash, _)| hash.wide());
        }
    }

    /// Bytes that the table takes up.
    pub(crate) fn resident(&self) -> usize {
        self.table.allocation_size()
    }
}

/// A set of numbers, hashed by their value.
#[derive(Default)]
pub(crate) struct IdSet {
    /// The numbers; each number is also the hash, before [`Hash::wide`].
    table: HashTable<u32>,
}

impl IdSet {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Iterates over the numbers, in no order that callers may expose.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.table.iter().copied()
    }

    /// Adds a number; the number must not be there yet.
    pub(crate) fn insert(&mut self, id: u32) {
        self.table.insert_unique(Hash(id).wide(), id, |id| Hash(*id).wide());
    }

    /// Removes a number, if present.
    pub(crate) fn remove(&mut self, id: u32) {
        if let Ok(entry) = self.table.find_entry(Hash(id).wide(), |other| *other == id) {
            entry.remove();
        }
    }

    /// Bytes that the set takes up.
    pub(crate) fn resident(&self) -> usize {
        self.table.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_that_count_up_spread_and_the_parts_of_a_key_do_not_run_together() {
        let hasher = Hasher::new(7);
        let hashes: BTreeSet<u32> =
            (0..10_000).map(|i| hasher.parts(Some("n"), &format!("pod-{i}")).0).collect();
        // 10,000 hashes of 32 bits have about 12 collisions in a thousand runs.
        assert!(hashes.len() >= 9_998, "{}", hashes.len());
        assert_ne!(hasher.parts(Some("ab"), "c"), hasher.parts(Some("a"), "bc"));
        assert_ne!(hasher.parts(None, "a"), hasher.parts(Some("a"), ""));
        assert_ne!(hasher.text("a"), hasher.text("a\0"));
        assert_ne!(hasher.text("a"), Hasher::new(8).text("a"));
    }

    #[test]
    fn a_table_that_empties_gives_its_memory_back() {
        let hasher = Hasher::new(1);
        let mut ids = Ids::default();
        let hash = |id: u32| hasher.text(&id.to_string());
        (0..10_000).for_each(|id| ids.insert(hash(id), id));
        let full = ids.resident();
        (0..9_990).for_each(|id| ids.remove(hash(id), id));
        assert!(ids.resident() < full / 50, "{} of {full}", ids.resident());
        assert_eq!(ids.find(hash(9_995), |id| id == 9_995), Some(9_995));
        assert_eq!(ids.find(hash(5), |id| id == 5), None);
    }
}
