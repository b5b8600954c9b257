//! A slab of slots and a hash table that finds a key's slot; the table's order is never visible.
//! Callers pass the hash of each key: the hash is computed before the queue's lock is taken.
//!
//! An idle key keeps its slot for the next add, which then costs a table lookup and no change of
//! the table. When there are very many slots, a new key gets the slot of an idle key.

// DESIGN.md, 64: A worker's attempt moves its state once
// DESIGN.md, 68: A key keeps its queue slot and notes the slot number
// DESIGN.md, 109: The work queue retains slots of idle keys up to a bound

use hashbrown::HashTable;

use super::slot::{KeySlot, Nanos, RepeatedAdd, Stage, Working};
use super::ticket::{NO_SLOT, Ticket};

/// Number of slots from which a new key gets the slot of an idle key. A key of unknown kind may
/// never be added again.
const RETAINED: usize = 4096;
/// The same for keys of objects, which are added again for as long as the object exists: ten
/// megabytes.
const RETAINED_OF_OBJECTS: usize = 1 << 17;
/// Most slots that a search for an idle slot reads; if all of these are in use, a new slot is
/// added.
const PROBES: usize = 16;

/// Slots, found by key and by number.
#[derive(Debug)]
pub(super) struct Slots<T> {
    table: HashTable<u32>,
    entries: Vec<SlotEntry<T>>,
    free: Vec<u32>,
    /// Slot at which the next search for an idle slot begins.
    next_probe: usize,
    /// Number of keys that are not idle.
    in_use: usize,
    /// Keys in work, in no order. They are few, so the data that change most lie close together.
    in_work: Vec<Working>,
    /// Number of slots from which a new key gets the slot of an idle key.
    retained: usize,
    slot_hint: Option<SlotHint<T>>,
}

/// Accessors of the slot number that a key stores. The number may belong to another queue or be
/// outdated, so callers check the number before use.
#[derive(Debug)]
pub(crate) struct SlotHint<T> {
    /// Reads the number that was stored last for the key or a clone of it.
    pub(crate) read: fn(&T) -> Option<u32>,
    /// Stores a number with the key.
    pub(crate) write: fn(&T, u32),
}

impl<T> Clone for SlotHint<T> {
    fn clone(&self) -> Self {
        Self { read: self.read, write: self.write }
    }
}

/// Slots that are no longer needed, or the key of a slot; to be dropped outside of locks.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::workqueue) enum Discarded<T> {
    Nothing,
    Key(T),
    Slots(Vec<SlotEntry<T>>),
}

/// A slot with the key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct SlotEntry<T> {
    hash: u32,
    /// `None` while the slot is free.
    key: Option<T>,
    /// A clone of the key that came with an add, to be handed to the next worker; only for keys
    /// that store their slot, whose clones are equal in all respects.
    spare: Option<T>,
    slot: KeySlot,
}

impl<T> Slots<T> {
    /// Returns an empty slab.
    pub(super) fn new(slot_hint: Option<SlotHint<T>>) -> Self {
        let retained = if slot_hint.is_some() { RETAINED_OF_OBJECTS } else { RETAINED };
        Self::retaining(retained, slot_hint)
    }

    /// Returns an empty slab; from `retained` slots on, a new key gets the slot of an idle key.
    pub(super) fn retaining(retained: usize, slot_hint: Option<SlotHint<T>>) -> Self {
        Self {
            table: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            next_probe: 0,
            in_use: 0,
            in_work: Vec::new(),
            retained,
            slot_hint,
        }
    }

    /// Number of slots, including free slots.
    #[cfg(test)]
    pub(super) fn slot_count(&self) -> usize {
        self.entries.len()
    }

    /// Number of keys that are not idle.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Returns a slot.
    pub(super) fn get(&self, ticket: Ticket) -> &KeySlot {
        &self.entries[ticket.index()].slot
    }

    /// Returns a slot for a change.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> &mut KeySlot {
        &mut self.entries[ticket.index()].slot
    }

    /// Returns the key of a slot for the worker that takes the key, `None` if the slot is free, and
    /// the slot for changes.
    #[inline]
    pub(super) fn entry_mut(&mut self, ticket: Ticket) -> (Option<T>, &mut KeySlot)
    where
        T: Clone,
    {
        let entry = &mut self.entries[ticket.index()];
        let key = entry.spare.take().or_else(|| entry.key.clone());
        (key, &mut entry.slot)
    }

    /// Returns the sequence number of a key in a lane; `None` also when there is no such key any
    /// more.
    pub(super) fn lane_seq(&self, ticket: Ticket) -> Option<u64> {
        match self.find_slot(ticket)?.stage {
            Stage::Ready { seq, .. } => Some(seq),
            Stage::Working { index } => match self.in_work.get(index as usize)?.again {
                RepeatedAdd::Now { seq, passed: false, .. } => Some(seq),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the keys in work, in no order.
    pub(super) fn in_work(&self) -> &[Working] {
        &self.in_work
    }

    /// Returns the key in work at an index.
    pub(super) fn working(&mut self, index: u32) -> &mut Working {
        &mut self.in_work[index as usize]
    }

    /// Adds a key to those in work; returns the index.
    #[inline]
    pub(super) fn begin_work(&mut self, ticket: Ticket, since: Nanos) -> u32 {
        let index = u32::try_from(self.in_work.len()).unwrap_or(u32::MAX);
        self.in_work.push(Working { ticket, since, again: RepeatedAdd::No });
        index
    }

    /// Removes the key at an index from those in work.
    #[inline]
    pub(super) fn end_work(&mut self, index: u32) -> Working {
        let ended = self.in_work.swap_remove(index as usize);
        // `swap_remove` moved the last key to this index.
        if let Some(moved) = self.in_work.get(index as usize) {
            self.entries[moved.ticket.index()].slot.stage = Stage::Working { index };
        }
        ended
    }

    /// Returns a slot, if still present.
    #[inline]
    pub(super) fn find_slot(&self, ticket: Ticket) -> Option<&KeySlot> {
        Some(&self.entries.get(ticket.index())?.slot)
    }

    /// Returns the key of a slot; `None` when the slot is free.
    pub(super) fn key(&self, ticket: Ticket) -> Option<&T> {
        self.entries[ticket.index()].key.as_ref()
    }

    /// Returns all slots of keys that are not idle, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &KeySlot)> {
        let numbered = (0_u32..).zip(&self.entries);
        let in_use = numbered.filter(|(_, entry)| !matches!(entry.slot.stage, Stage::Idle));
        in_use
            .map(|(at, entry)| (Ticket { at, hash: entry.hash }, &entry.slot))
            // Stops after the last slot in use: many idle slots may follow.
            .take(self.in_use)
    }

    /// [`make_idle`](Self::make_idle) for a key without failures; returns whether that was
    /// possible.
    #[inline]
    pub(super) fn make_idle_plain(&mut self, ticket: Ticket) -> bool {
        if self.in_use == 1 && self.entries.len() > self.retained {
            // The last key in use: the memory may have to be released, which `make_idle` does.
            return false;
        }
        self.in_use -= 1;
        self.entries[ticket.index()].slot.stage = Stage::Idle;
        true
    }

    /// Makes a key idle and keeps the slot.
    pub(super) fn make_idle(&mut self, ticket: Ticket) -> Discarded<T> {
        self.in_use -= 1;
        self.entries[ticket.index()].slot = KeySlot::idle();
        self.take_unused().map_or(Discarded::Nothing, Discarded::Slots)
    }

    /// Makes a key idle and frees the slot for another key.
    #[cold]
    pub(super) fn release(&mut self, ticket: Ticket) -> Discarded<T> {
        self.in_use -= 1;
        self.entries[ticket.index()].slot = KeySlot::idle();
        self.remove_from_table(ticket);
        if let Some(all) = self.take_unused() {
            return Discarded::Slots(all);
        }
        self.free.push(ticket.at);
        // The worker has a clone of the key.
        self.entries[ticket.index()].key.take().map_or(Discarded::Nothing, Discarded::Key)
    }

    /// Returns all slots, to release their memory, when no key is in use, after a flood of keys or
    /// when most of very many keys were released.
    fn take_unused(&mut self) -> Option<Vec<SlotEntry<T>>> {
        let slots = self.entries.len();
        if self.in_use > 0 || slots <= self.retained {
            return None;
        }
        // Most slots still have a key that may be added again: not worth a release.
        if slots <= 2 * self.retained && 2 * self.table.len() > slots {
            return None;
        }
        let new = Self::retaining(self.retained, self.slot_hint.clone());
        Some(std::mem::replace(self, new).entries)
    }

    /// Removes a slot from the table.
    fn remove_from_table(&mut self, ticket: Ticket) {
        if let Ok(found) = self.table.find_entry(ticket.hash(), |at| *at == ticket.at) {
            found.remove();
        }
    }

    /// Returns the probable slot of a key: the slot that the key stores, otherwise the table's slot
    /// for the hash; [`NO_SLOT`] if there is none. The lookups of several keys overlap, because
    /// none depends on the result of another.
    #[inline]
    pub(super) fn guess(&self, key: &T, hash: u64) -> u32 {
        if let Some(hint) = &self.slot_hint
            && let Some(slot) = (hint.read)(key)
        {
            return slot;
        }
        self.table.find(Ticket::new(0, hash).hash(), |_| true).map_or(NO_SLOT, |at| *at)
    }

    /// Returns whether the key in the guessed slot has this hash. Equal hashes do not prove equal
    /// keys, so [`get_or_insert`](Slots::get_or_insert) compares the keys.
    #[inline]
    pub(super) fn confirm(&self, guess: u32, hash: u64) -> bool {
        let hash = Ticket::new(0, hash).hash;
        self.entries.get(guess as usize).is_some_and(|entry| entry.hash == hash)
    }
}

impl<T: Eq> Slots<T> {
    /// Returns the slot of `key` and whether the key was idle until now. The key is taken unless
    /// already in use; the key that replaces it in the argument is to be dropped outside of locks.
    /// `None` when there is no key.
    #[inline]
    pub(super) fn get_or_insert(
        &mut self,
        key: &mut Option<T>,
        hash: u64,
        guess: u32,
    ) -> Option<(Ticket, bool)> {
        let wanted = key.as_ref()?;
        let sought = Ticket::new(0, hash);
        let is_key = |at: &u32| {
            self.entries.get(*at as usize).is_some_and(|entry| entry.key.as_ref() == Some(wanted))
        };
        // A guess is only a hint: the comparison of keys decides.
        let at = if is_key(&guess) {
            guess
        } else if let Some(at) = self.table.find(sought.hash(), is_key) {
            self.store_hint(wanted, *at);
            *at
        } else {
            return Some((self.insert(key, sought), true));
        };
        let entry = &mut self.entries[at as usize];
        let was_idle = matches!(entry.slot.stage, Stage::Idle);
        if was_idle {
            self.in_use += 1;
            // The newer of two equal keys is stored, since equal keys may differ in other fields.
            // Keys that store their slot do not differ, so the newer key becomes the spare and
            // saves a clone.
            let stored = if self.slot_hint.is_some() { &mut entry.spare } else { &mut entry.key };
            std::mem::swap(stored, key);
        }
        Some((Ticket { at, ..sought }, was_idle))
    }

    /// Stores a slot's number with the key, whose next add then needs no search of the table.
    fn store_hint(&self, key: &T, at: u32) {
        if let Some(hint) = &self.slot_hint {
            (hint.write)(key, at);
        }
    }

    /// Creates a slot for a key that has none.
    #[cold]
    fn insert(&mut self, key: &mut Option<T>, sought: Ticket) -> Ticket {
        let free = self.free.pop();
        let new =
            SlotEntry { hash: sought.hash, key: key.take(), spare: None, slot: KeySlot::idle() };
        let at = match free.or_else(|| self.reuse_idle(key)) {
            Some(at) => {
                self.entries[at as usize] = new;
                at
            }
            None => {
                self.entries.push(new);
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 keys")
            }
        };
        let entries = &self.entries;
        if let Some(key) = &entries[at as usize].key {
            self.store_hint(key, at);
        }
        let hash_of = |at: &u32| Ticket { at: *at, hash: entries[*at as usize].hash }.hash();
        self.table.insert_unique(sought.hash(), at, hash_of);
        self.in_use += 1;
        Ticket { at, ..sought }
    }

    /// Returns the slot of an idle key when there are very many slots; the key is moved into `old`.
    fn reuse_idle(&mut self, old: &mut Option<T>) -> Option<u32> {
        if self.entries.len() < self.retained {
            return None;
        }
        for _ in 0..PROBES.min(self.entries.len()) {
            let at = self.next_probe % self.entries.len();
            self.next_probe = at + 1;
            let entry = &mut self.entries[at];
            if matches!(entry.slot.stage, Stage::Idle) && entry.key.is_some() {
                *old = entry.key.take();
                let ticket = Ticket { at: u32::try_from(at).ok()?, hash: entry.hash };
                self.remove_from_table(ticket);
                return Some(ticket.at);
            }
        }
        None
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

    const MANY: usize = 100;

    fn add<T: Eq>(slots: &mut Slots<T>, key: T, hash: u64) -> (Ticket, bool) {
        let guess = slots.guess(&key, hash);
        let (ticket, was_idle) = slots.get_or_insert(&mut Some(key), hash, guess).expect("a key");
        // A key in another stage than `Idle` is in use.
        slots.get_mut(ticket).stage = Stage::Waiting { at: 0, seq: 0 };
        (ticket, was_idle)
    }

    fn hash_of(key: usize) -> u64 {
        // Some keys share a hash.
        key as u64 % 91
    }

    /// Slots of the keys 0, 1, 2, …, all in use.
    fn slots_of(keys: usize) -> (Slots<usize>, Vec<Ticket>) {
        let mut slots = Slots::retaining(MANY, None);
        let tickets = (0..keys).map(|key| add(&mut slots, key, hash_of(key)).0).collect();
        (slots, tickets)
    }

    #[test]
    fn an_idle_key_keeps_its_slot_and_a_released_slot_is_reused() {
        let mut slots = Slots::retaining(MANY, None);
        let (first, was_idle) = add(&mut slots, "a", 7);
        assert!(was_idle);
        let mut again = Some("a");
        assert_eq!(slots.get_or_insert(&mut again, 7, 0), Some((first, false)));
        assert_eq!(again, Some("a"), "a key that has a slot is not taken");
        assert_eq!(slots.make_idle(first), Discarded::Nothing);
        assert_eq!((slots.in_use(), add(&mut slots, "a", 7)), (0, (first, true)));
        assert_eq!(slots.release(first), Discarded::Key("a"));
        assert_eq!(add(&mut slots, "b", 7), (first, true));
        assert_eq!((slots.find(&"a", 7), slots.find(&"b", 7)), (None, Some(first)));
        assert_eq!(slots.in_use(), 1);
    }

    #[test]
    fn a_wrong_guess_finds_the_right_slot() {
        let mut slots = Slots::retaining(MANY, None);
        let tickets = ["a", "b", "c"].map(|key| add(&mut slots, key, 7).0);
        for guess in [0, 1, 2, 3, NO_SLOT] {
            for (key, ticket) in ["a", "b", "c"].into_iter().zip(tickets) {
                assert_eq!(slots.get_or_insert(&mut Some(key), 7, guess), Some((ticket, false)));
            }
        }
    }

    #[test]
    fn a_stored_hint_is_guessed_first_and_replaced_when_the_key_is_in_another_slot() {
        use std::cell::Cell;
        thread_local!(static STORED: Cell<Option<u32>> = const { Cell::new(None) });
        let hint = SlotHint { read: |_| STORED.get(), write: |_, at| STORED.set(Some(at)) };
        let mut slots = Slots::retaining(MANY, Some(hint));
        assert_eq!(slots.guess(&"a", 7), NO_SLOT);
        let first = add(&mut slots, "a", 7).0;
        assert_eq!(STORED.get(), Some(first.at));
        STORED.set(Some(9));
        assert_eq!((slots.guess(&"a", 7), slots.confirm(9, 7)), (9, false));
        assert_eq!(add(&mut slots, "a", 7), (first, false));
        assert_eq!((STORED.get(), slots.confirm(first.at, 7)), (Some(first.at), true));
    }

    #[test]
    fn after_a_flood_of_keys_the_memory_is_released() {
        let (mut slots, tickets) = slots_of(2 * MANY + 1);
        let (last, others) = tickets.split_last().expect("some");
        for ticket in others {
            assert!(slots.make_idle_plain(*ticket));
        }
        assert!(!slots.make_idle_plain(*last), "the last key may release the memory");
        assert!(
            matches!(slots.make_idle(*last), Discarded::Slots(all) if all.len() == 2 * MANY + 1)
        );
        assert_eq!((slots.in_use(), slots.entries.capacity(), slots.free.capacity()), (0, 0, 0));
        assert_eq!(slots.find(&0, 0), None);
    }

    #[test]
    fn when_most_of_very_many_keys_are_released_so_is_their_memory() {
        let (mut slots, tickets) = slots_of(MANY + 20);
        for (key, ticket) in tickets.iter().enumerate().skip(1) {
            assert_eq!(slots.release(*ticket), Discarded::Key(key));
        }
        // The last key is among the slots that the caller drops.
        let Discarded::Slots(all) = slots.release(tickets[0]) else { panic!("not released") };
        assert_eq!(all.into_iter().filter_map(|entry| entry.key).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn of_very_many_keys_a_new_one_gets_the_slot_of_an_idle_one() {
        let (mut slots, tickets) = slots_of(MANY);
        for key in [5, 7] {
            assert_eq!(slots.make_idle(tickets[key]), Discarded::Nothing);
        }
        for (new, old) in [(MANY, 5), (MANY + 1, 7)] {
            let mut key = Some(new);
            let (ticket, _) = slots.get_or_insert(&mut key, hash_of(new), NO_SLOT).expect("a key");
            slots.get_mut(ticket).stage = Stage::Waiting { at: 0, seq: 0 };
            assert_eq!((ticket.at, key), (tickets[old].at, Some(old)), "the old key is returned");
            assert_eq!(slots.find(&old, hash_of(old)), None);
        }
        // All slots are in use: a new slot is added.
        assert_eq!(add(&mut slots, MANY + 2, hash_of(MANY + 2)).0.at as usize, MANY);
        assert_eq!((slots.in_use(), slots.table.len()), (MANY + 1, MANY + 1));
    }

    #[test]
    fn slots_are_as_many_as_were_in_use_at_once_or_as_are_retained() {
        // A single key is never idle, like a key with a delay.
        let (mut slots, tickets) = slots_of(MANY + MANY / 2);
        tickets.iter().skip(1).for_each(|ticket| drop(slots.make_idle(*ticket)));
        for key in 0..20 * MANY {
            let ticket = add(&mut slots, 1000 + key, hash_of(key)).0;
            assert_eq!(slots.make_idle(ticket), Discarded::Nothing);
        }
        assert_eq!(slots.entries.len(), MANY + MANY / 2);
    }

    #[test]
    fn a_listing_of_keys_in_use_ends_before_the_idle_slots_behind_them() {
        let (mut slots, tickets) = slots_of(MANY);
        tickets.iter().skip(3).for_each(|ticket| drop(slots.make_idle(*ticket)));
        assert_eq!(slots.iter().map(|(ticket, _)| ticket).collect::<Vec<_>>(), tickets[..3]);
        slots.in_use = 0;
        assert_eq!(slots.iter().count(), 0);
    }
}
