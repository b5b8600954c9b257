//! The number of a slot, as workers, lanes and timers keep it.

// DESIGN.md, 64: A worker's attempt moves its state once

/// The number of no slot: the guess for a key without a slot.
pub(in crate::workqueue) const NO_SLOT: u32 = u32::MAX;

/// The number of a slot. A ticket names the same key until the key is idle.
///
/// A ticket carries half of the key's hash, so that the slot's entry in the table is found without
/// reading the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workqueue) struct Ticket {
    pub(super) at: u32,
    pub(super) hash: u32,
}

impl Ticket {
    pub(super) fn new(at: u32, hash: u64) -> Self {
        Self { at, hash: (hash ^ (hash >> 32)) as u32 }
    }

    pub(super) fn index(self) -> usize {
        self.at as usize
    }

    /// Returns a 64-bit hash for the table, which picks a bucket by the lower bits and compares the
    /// upper ones; hence the repeated 32 bits.
    pub(super) fn hash(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}
