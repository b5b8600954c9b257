//! A slab of slots and a hash table that finds a key's slot; its order shows nowhere. Whoever has a key
//! knows its hash: it is made before the lock is taken.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

use super::slot::{Place as At, Slot};

/// So many slots are kept for later although none is in use.
const KEPT: usize = 4096;

/// The number of a slot. It names the same key until the key rests.
///
/// With it goes half of the key's hash: whoever has a ticket finds the slot's place in the table without
/// a look at the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::workqueue) struct Ticket {
    at: u32,
    hash: u32,
}

impl Ticket {
    fn new(at: u32, hash: u64) -> Self {
        Self { at, hash: (hash ^ (hash >> 32)) as u32 }
    }

    fn index(self) -> usize {
        self.at as usize
    }

    /// The table picks a place by the lower bits and tells keys apart by the upper ones.
    fn hash(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

/// Slots by key and by number.
#[derive(Debug)]
pub(super) struct Slots<T> {
    table: HashTable<u32>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    hash: u32,
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
        &self.entries[ticket.index()].slot
    }

    /// The slot of that number, to change it.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> &mut Slot {
        &mut self.entries[ticket.index()].slot
    }

    /// The key of that slot, unless it is free, and the slot, to change it.
    #[inline]
    pub(super) fn entry_mut(&mut self, ticket: Ticket) -> (Option<&T>, &mut Slot) {
        let entry = &mut self.entries[ticket.index()];
        (entry.key.as_ref(), &mut entry.slot)
    }

    /// The turn that the key with that number has in a line; `None` also when there is no such key
    /// any more.
    pub(super) fn turn(&self, ticket: Ticket) -> Option<u64> {
        self.find_slot(ticket)?.turn()
    }

    /// The slot of that number, if there is one still.
    #[inline]
    pub(super) fn find_slot(&self, ticket: Ticket) -> Option<&Slot> {
        Some(&self.entries.get(ticket.index())?.slot)
    }

    /// The key whose slot that is; `None` when the slot is free.
    pub(super) fn key(&self, ticket: Ticket) -> Option<&T> {
        self.entries[ticket.index()].key.as_ref()
    }

    /// All keys that have a slot, in the order of the slots.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Slot)> {
        let numbered = (0_u32..).zip(&self.entries).filter(|(_, entry)| entry.key.is_some());
        numbered.map(|(at, entry)| (Ticket { at, hash: entry.hash }, &entry.slot))
    }
}

impl<T: Eq> Slots<T> {
    /// The slot of `key`, whose hash that is, and whether it was made just now.
    pub(super) fn enter(&mut self, key: T, hash: u64) -> (Ticket, bool) {
        let Self { table, entries, free } = self;
        let next = free.last().map_or(entries.len(), |at| *at as usize);
        let new = Ticket::new(u32::try_from(next).expect("fewer than 2^32 keys"), hash);
        let is_key = |at: &u32| entries[*at as usize].key.as_ref() == Some(&key);
        let hash_of = |at: &u32| Ticket { at: *at, hash: entries[*at as usize].hash }.hash();
        let place = match table.entry(new.hash(), is_key, hash_of) {
            Place::Occupied(found) => return (Ticket { at: *found.get(), ..new }, false),
            Place::Vacant(place) => place,
        };
        place.insert(new.at);
        let entry = Entry { hash: new.hash, key: Some(key), slot: Slot::resting() };
        match free.pop() {
            Some(at) => entries[at as usize] = entry,
            None => entries.push(entry),
        }
        (new, true)
    }

    /// The key rests: its slot is free for another. Returns the key, for the caller to drop.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<T> {
        let entry = &mut self.entries[ticket.index()];
        let key = entry.key.take()?;
        entry.slot.place = At::Resting;
        if let Ok(found) = self.table.find_entry(ticket.hash(), |at| *at == ticket.at) {
            found.remove();
        }
        self.free.push(ticket.at);
        if self.table.is_empty() && self.entries.len() > KEPT {
            (self.table, self.entries, self.free) = (HashTable::new(), Vec::new(), Vec::new());
        }
        Some(key)
    }

    #[cfg(test)]
    pub(super) fn find(&self, key: &T, hash: u64) -> Option<Ticket> {
        let is_key = |at: &u32| self.entries[*at as usize].key.as_ref() == Some(key);
        let at = *self.table.find(Ticket::new(0, hash).hash(), is_key)?;
        Some(Ticket::new(at, hash))
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
