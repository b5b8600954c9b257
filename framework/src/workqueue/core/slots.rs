//! A slab of slots and a hash table that finds a key's slot; its order shows nowhere. Whoever has a key
//! knows its hash: it is made before the lock is taken.

use hashbrown::HashTable;

use super::slot::Slot;

/// So many slots are kept for later although none is in use.
const KEPT: usize = 4096;

/// The number of a slot. It names the same key until the key rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workqueue) struct Ticket(u32);

/// Slots by key and by number.
#[derive(Debug)]
pub(super) struct Slots<T> {
    table: HashTable<u32>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    /// `None` while the slot is free.
    key: Option<T>,
    slot: Slot,
}

impl<T> Slots<T> {
    /// No slots.
    pub(super) fn new() -> Self {
        Self { table: HashTable::new(), entries: Vec::new(), free: Vec::new() }
    }

    /// Number of keys that have a slot.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The slot of that number.
    pub(super) fn get(&self, ticket: Ticket) -> &Slot {
        &self.entries[ticket.0 as usize].slot
    }

    /// The slot of that number, to change it.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> &mut Slot {
        &mut self.entries[ticket.0 as usize].slot
    }

    /// The turn that the key with that number has in a line; `None` also when there is no such key
    /// any more.
    pub(super) fn turn(&self, ticket: Ticket) -> Option<u64> {
        self.entries.get(ticket.0 as usize)?.slot.turn()
    }

    /// The key whose slot that is; `None` when the slot is free.
    pub(super) fn key(&self, ticket: Ticket) -> Option<&T> {
        self.entries[ticket.0 as usize].key.as_ref()
    }

    /// All keys that have a slot, in the order of the slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Slot)> {
        let numbered = (0_u32..).zip(&self.entries).filter(|(_, entry)| entry.key.is_some());
        numbered.map(|(at, entry)| (Ticket(at), &entry.slot))
    }
}

impl<T: Eq> Slots<T> {
    /// The slot of `key`, whose hash that is, and whether it was made just now.
    pub(super) fn enter(&mut self, key: T, hash: u64) -> (Ticket, bool) {
        let Self { table, entries, free, .. } = self;
        let is_key = |at: &u32| entries[*at as usize].key.as_ref() == Some(&key);
        if let Some(at) = table.find(hash, is_key) {
            return (Ticket(*at), false);
        }
        let entry = Entry { hash, key: Some(key), slot: Slot::resting() };
        let at = match free.pop() {
            Some(at) => {
                entries[at as usize] = entry;
                at
            }
            None => {
                entries.push(entry);
                u32::try_from(entries.len() - 1).expect("fewer than 2^32 keys")
            }
        };
        table.insert_unique(hash, at, |at| entries[*at as usize].hash);
        (Ticket(at), true)
    }

    /// The key rests: its slot is free for another. Returns the key, for the caller to drop.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let entry = &mut self.entries[ticket.0 as usize];
        let key = entry.key.take()?;
        entry.slot = Slot::resting();
        if let Ok(found) = self.table.find_entry(entry.hash, |at| *at == ticket.0) {
            found.remove();
        }
        self.free.push(ticket.0);
        if self.table.is_empty() && self.entries.len() > KEPT {
            (self.table, self.entries, self.free) = (HashTable::new(), Vec::new(), Vec::new());
        }
        Some(key)
    }

    #[cfg(test)]
    pub(super) fn find(&self, key: &T, hash: u64) -> Option<Ticket> {
        let is_key = |at: &u32| self.entries[*at as usize].key.as_ref() == Some(key);
        self.table.find(hash, is_key).copied().map(Ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_became_free_is_used_again() {
        let mut slots = Slots::new();
        let (first, is_new) = slots.enter("a", 7);
        assert!(is_new);
        assert_eq!(slots.enter("a", 7), (first, false));
        assert_eq!(slots.leave(first), Some("a"));
        assert_eq!(slots.leave(first), None);
        assert_eq!(slots.enter("b", 7), (first, true));
        assert_eq!((slots.find(&"a", 7), slots.find(&"b", 7)), (None, Some(first)));
    }

    #[test]
    fn after_a_flood_of_keys_the_memory_is_given_back() {
        let mut slots = Slots::new();
        let tickets: Vec<_> =
            (0..2 * KEPT).map(|key| slots.enter(key, key as u64 % 999).0).collect();
        for (key, ticket) in tickets.into_iter().enumerate() {
            assert_eq!(slots.leave(ticket), Some(key));
        }
        assert_eq!((slots.len(), slots.entries.capacity(), slots.free.capacity()), (0, 0, 0));
    }
}
