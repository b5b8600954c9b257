//! A slab of slots and a hash table that finds a key's slot; its order shows nowhere. Whoever has a key
//! knows its hash: it is made before the lock is taken.
//!
//! A key that rests keeps its slot, for the next time: what comes back costs a look into the table, and
//! no change of it. When there are very many, a new key gets the slot of one that rests.

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::slot::{Again, Nanos, Place as At, Slot, Working};

/// So many slots there are before a new key gets that of one that rests: eight megabytes of a controller's
/// keys.
pub(super) const KEPT: usize = 1 << 17;

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
    /// Slots of keys that rest, or rested when they were put here; the oldest first. Nothing while there are
    /// few slots.
    spare: VecDeque<u32>,
    /// Keys that do not rest.
    in_use: usize,
    /// Keys in work, in no order. There are few, so that what changes most lies close together.
    in_work: Vec<Working>,
    /// So many slots there are before a new key gets that of one that rests.
    kept: usize,
    notes: Notes<T>,
}

/// What keys note of the slot that they have. It may be of another queue, or of long ago: who reads it
/// looks whether it is so.
#[derive(Debug)]
pub(crate) struct Notes<T> {
    /// What was noted last with the key or a clone of it.
    pub(crate) read: fn(&T) -> Option<u32>,
    /// Notes it.
    pub(crate) write: fn(&T, u32),
}

/// No slot has that number.
pub(in crate::workqueue) const NOWHERE: u32 = u32::MAX;

impl<T> Notes<T> {
    /// Keys that note nothing.
    pub(in crate::workqueue) fn none() -> Self {
        Self { read: |_| None, write: |_, _| {} }
    }
}

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self { read: self.read, write: self.write }
    }
}

/// Slots that are needed no more, or the key of one; to be dropped outside of locks.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) enum Left<T> {
    Nothing,
    Key(T),
    Slots(Vec<Entry<T>>),
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Entry<T> {
    hash: u32,
    /// Is it among the spare ones?
    is_spare: bool,
    /// `None` while the slot is free.
    key: Option<T>,
    /// A clone of it that came with an add, for who works on it next.
    spare: Option<T>,
    slot: Slot,
}

impl<T> Slots<T> {
    /// No slots; with more than `kept` a new key gets that of one that rests.
    pub(super) fn new(kept: usize, notes: Notes<T>) -> Self {
        Self {
            table: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            spare: VecDeque::new(),
            in_use: 0,
            in_work: Vec::new(),
            kept,
            notes,
        }
    }

    /// Number of keys that do not rest.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// The slot of that number.
    pub(super) fn get(&self, ticket: Ticket) -> &Slot {
        &self.entries[ticket.index()].slot
    }

    /// The slot of that number, to change it.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> &mut Slot {
        &mut self.entries[ticket.index()].slot
    }

    /// The key of that slot, unless it is free, for who works on it, and the slot, to change it.
    #[inline]
    pub(super) fn entry_mut(&mut self, ticket: Ticket) -> (Option<T>, &mut Slot)
    where
        T: Clone,
    {
        let entry = &mut self.entries[ticket.index()];
        let key = entry.spare.take().or_else(|| entry.key.clone());
        (key, &mut entry.slot)
    }

    /// The turn that the key with that number has in a line; `None` also when there is no such key
    /// any more.
    pub(super) fn turn(&self, ticket: Ticket) -> Option<u64> {
        match self.find_slot(ticket)?.place {
            At::Ready { turn, .. } => Some(turn),
            At::Working { spot } => match self.in_work.get(spot as usize)?.again {
                Again::Now { turn, passed: false, .. } => Some(turn),
                _ => None,
            },
            _ => None,
        }
    }

    /// Keys in work, in no order.
    pub(super) fn in_work(&self) -> &[Working] {
        &self.in_work
    }

    /// The key in work at that spot.
    pub(super) fn working(&mut self, spot: u32) -> &mut Working {
        &mut self.in_work[spot as usize]
    }

    /// A key is in work from now on; tells its spot.
    #[inline]
    pub(super) fn begin_work(&mut self, ticket: Ticket, since: Nanos) -> u32 {
        let spot = u32::try_from(self.in_work.len()).unwrap_or(u32::MAX);
        self.in_work.push(Working { ticket, since, again: Again::No });
        spot
    }

    /// The key at that spot is in work no more.
    #[inline]
    pub(super) fn end_work(&mut self, spot: u32) -> Working {
        let ended = self.in_work.swap_remove(spot as usize);
        if let Some(moved) = self.in_work.get(spot as usize) {
            self.entries[moved.ticket.index()].slot.place = At::Working { spot };
        }
        ended
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

    /// All slots that belong to a key, of those that rest too, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Slot)> {
        let numbered = (0_u32..).zip(&self.entries).filter(|(_, entry)| entry.key.is_some());
        numbered.map(|(at, entry)| (Ticket { at, hash: entry.hash }, &entry.slot))
    }

    /// [`rest`](Self::rest) for a key of which nothing is known but that it is in work; tells whether it
    /// could be done like that.
    #[inline]
    pub(super) fn rest_plainly(&mut self, ticket: Ticket) -> bool {
        if self.entries.len() > self.kept {
            return false;
        }
        self.in_use -= 1;
        self.entries[ticket.index()].slot.place = At::Resting;
        true
    }

    /// The key rests, and keeps its slot.
    pub(super) fn rest(&mut self, ticket: Ticket) -> Left<T> {
        self.in_use -= 1;
        let number_of_slots = self.entries.len();
        let entry = &mut self.entries[ticket.index()];
        entry.slot = Slot::resting();
        if number_of_slots <= self.kept {
            return Left::Nothing;
        }
        if !std::mem::replace(&mut entry.is_spare, true) {
            self.spare.push_back(ticket.at);
        }
        self.give_back().map_or(Left::Nothing, Left::Slots)
    }

    /// The key rests, and leaves its slot to another.
    #[cold]
    pub(super) fn leave(&mut self, ticket: Ticket) -> Left<T> {
        self.in_use -= 1;
        let entry = &mut self.entries[ticket.index()];
        entry.slot = Slot::resting();
        // Who works on it has the other one.
        let key = entry.key.take().or_else(|| entry.spare.take());
        self.forget(ticket);
        self.free.push(ticket.at);
        match (self.give_back(), key) {
            (Some(all), _) => Left::Slots(all),
            (None, key) => key.map_or(Left::Nothing, Left::Key),
        }
    }

    /// After a flood of keys.
    fn give_back(&mut self) -> Option<Vec<Entry<T>>> {
        if self.in_use > 0 || self.entries.len() <= 2 * self.kept {
            return None;
        }
        let new = Self::new(self.kept, self.notes.clone());
        Some(std::mem::replace(self, new).entries)
    }

    fn forget(&mut self, ticket: Ticket) {
        if let Ok(found) = self.table.find_entry(ticket.hash(), |at| *at == ticket.at) {
            found.remove();
        }
    }

    /// The slot of that key, most likely. Of several keys the looks overlap, as none needs what another
    /// finds.
    #[inline]
    pub(super) fn guess(&self, key: &T, hash: u64) -> u32 {
        if let Some(noted) = (self.notes.read)(key) {
            return noted;
        }
        self.table.find(Ticket::new(0, hash).hash(), |_| true).map_or(NOWHERE, |at| *at)
    }

    /// Is the key in that slot of that hash?
    #[inline]
    pub(super) fn confirm(&self, guess: u32, hash: u64) -> bool {
        let hash = Ticket::new(0, hash).hash;
        self.entries.get(guess as usize).is_some_and(|entry| entry.hash == hash)
    }
}

impl<T: Eq> Slots<T> {
    /// The slot of `key`, whose hash that is, and whether the key rested until now. The key is taken if it
    /// has no slot yet, perhaps for another one; `None` when there is none to take.
    #[inline]
    pub(super) fn enter(
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
        let at = if is_key(&guess) {
            guess
        } else if let Some(at) = self.table.find(sought.hash(), is_key) {
            (self.notes.write)(wanted, *at);
            *at
        } else {
            return Some((self.make(key, sought)?, true));
        };
        let entry = &mut self.entries[at as usize];
        let rested = matches!(entry.slot.place, At::Resting);
        if rested {
            self.in_use += 1;
            // What is given away anyway need not be cloned later.
            std::mem::swap(&mut entry.spare, key);
        }
        Some((Ticket { at, ..sought }, rested))
    }

    /// A slot for a key that has none.
    #[cold]
    fn make(&mut self, key: &mut Option<T>, sought: Ticket) -> Option<Ticket> {
        let new = Entry {
            hash: sought.hash,
            is_spare: false,
            key: key.take(),
            spare: None,
            slot: Slot::resting(),
        };
        let at = match self.free.pop().or_else(|| self.take_spare(key)) {
            Some(at) => {
                // It may be among the spare ones still.
                let is_spare = self.entries[at as usize].is_spare;
                self.entries[at as usize] = Entry { is_spare, ..new };
                at
            }
            None => {
                self.entries.push(new);
                u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 keys")
            }
        };
        let entries = &self.entries;
        if let Some(key) = &entries[at as usize].key {
            (self.notes.write)(key, at);
        }
        let hash_of = |at: &u32| Ticket { at: *at, hash: entries[*at as usize].hash }.hash();
        self.table.insert_unique(sought.hash(), at, hash_of);
        self.in_use += 1;
        Some(Ticket { at, ..sought })
    }

    /// The slot of a key that rests; the key is put out of it.
    fn take_spare(&mut self, old: &mut Option<T>) -> Option<u32> {
        while let Some(at) = self.spare.pop_front() {
            let entry = &mut self.entries[at as usize];
            entry.is_spare = false;
            if matches!(entry.slot.place, At::Resting) && entry.key.is_some() {
                *old = entry.key.take();
                let ticket = Ticket { at, hash: entry.hash };
                self.forget(ticket);
                return Some(at);
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

    fn enter<T: Eq>(slots: &mut Slots<T>, key: T, hash: u64) -> (Ticket, bool) {
        let guess = slots.guess(&key, hash);
        let (ticket, rested) = slots.enter(&mut Some(key), hash, guess).expect("a key");
        // What tells a key that does not rest from one that does.
        slots.get_mut(ticket).place = At::Waiting { at: 0, turn: 0 };
        (ticket, rested)
    }

    fn hash_of(key: usize) -> u64 {
        // Some are the same.
        key as u64 % 91
    }

    #[test]
    fn a_key_that_rests_keeps_its_slot_and_one_that_is_gone_leaves_it_to_others() {
        let mut slots = Slots::new(MANY, Notes::none());
        let (first, rested) = enter(&mut slots, "a", 7);
        assert!(rested);
        let mut again = Some("a");
        assert_eq!(slots.enter(&mut again, 7, 0), Some((first, false)));
        assert_eq!(again, Some("a"), "a key that has a slot is not taken");
        assert_eq!(slots.rest(first), Left::Nothing);
        assert_eq!((slots.in_use(), enter(&mut slots, "a", 7)), (0, (first, true)));
        assert_eq!(slots.leave(first), Left::Key("a"));
        assert_eq!(enter(&mut slots, "b", 7), (first, true));
        assert_eq!((slots.find(&"a", 7), slots.find(&"b", 7)), (None, Some(first)));
        assert_eq!(slots.in_use(), 1);
    }

    #[test]
    fn a_wrong_guess_finds_the_right_slot() {
        let mut slots = Slots::new(MANY, Notes::none());
        let tickets = ["a", "b", "c"].map(|key| enter(&mut slots, key, 7).0);
        for guess in [0, 1, 2, 3, u32::MAX] {
            for (key, ticket) in ["a", "b", "c"].into_iter().zip(tickets) {
                assert_eq!(slots.enter(&mut Some(key), 7, guess), Some((ticket, false)));
            }
        }
    }

    #[test]
    fn after_a_flood_of_keys_the_memory_is_given_back() {
        let mut slots = Slots::new(MANY, Notes::none());
        let tickets: Vec<_> =
            (0..=2 * MANY).map(|key| enter(&mut slots, key, hash_of(key)).0).collect();
        let (last, others) = tickets.split_last().expect("some");
        for ticket in others {
            assert_eq!(slots.rest(*ticket), Left::Nothing);
        }
        assert!(matches!(slots.rest(*last), Left::Slots(all) if all.len() == 2 * MANY + 1));
        let kept = (slots.entries.capacity(), slots.free.capacity(), slots.spare.capacity());
        assert_eq!((slots.in_use(), kept), (0, (0, 0, 0)));
        assert_eq!(slots.find(&0, 0), None);
    }

    #[test]
    fn of_very_many_keys_a_new_one_gets_the_slot_of_one_that_rests() {
        let mut slots = Slots::new(MANY, Notes::none());
        let many = MANY + 9;
        let tickets: Vec<_> = (0..many).map(|key| enter(&mut slots, key, hash_of(key)).0).collect();
        // The second one rests twice, and the first one is used again before its slot is needed.
        for key in [0, 1] {
            slots.rest(tickets[key]);
            assert_eq!(enter(&mut slots, key, hash_of(key)), (tickets[key], true));
        }
        slots.rest(tickets[1]);
        slots.rest(tickets[2]);
        for (new, old) in [(many, 1), (many + 1, 2)] {
            let mut key = Some(new);
            assert_eq!(
                slots.enter(&mut key, hash_of(new), 0).map(|(ticket, _)| ticket.at),
                Some(tickets[old].at)
            );
            assert_eq!(key, Some(old), "who had it is handed out");
            assert_eq!(
                (slots.find(&old, hash_of(old)), slots.in_use()),
                (None, many - 2 + new + 1 - many)
            );
        }
        assert_eq!(slots.enter(&mut Some(0), hash_of(0), 0), Some((tickets[0], false)));
        assert_eq!((slots.entries.len(), slots.spare.len()), (many, 0));
    }

    #[test]
    fn a_slot_that_was_left_while_spare_is_used_once() {
        let mut slots = Slots::new(MANY, Notes::none());
        let many = MANY + 9;
        let tickets: Vec<_> = (0..many).map(|key| enter(&mut slots, key, hash_of(key)).0).collect();
        slots.rest(tickets[5]);
        enter(&mut slots, 5, hash_of(5));
        slots.leave(tickets[5]);
        let [first, second] = [many, many + 1].map(|key| enter(&mut slots, key, hash_of(key)).0);
        assert_eq!((first.at, second.at as usize), (tickets[5].at, many));
    }
}
