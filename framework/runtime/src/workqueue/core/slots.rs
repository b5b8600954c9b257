//! A slab of slots and a hash table that finds a key's slot; the table's order is never visible.
//! Callers pass the hash of each key: it is computed before the queue's lock is taken.
//!
//! A resting key keeps its slot for its next add, which then costs a table look-up and no change of
//! the table. When there are very many slots, a new key gets the slot of a resting one.

use hashbrown::HashTable;

use super::slot::{Again, Nanos, Slot, Stage, Working};

/// Number of slots from which a new key gets the slot of a resting one. A key of unknown kind may
/// never come back.
const KEPT: usize = 4096;
/// The same for keys of objects, which come back for as long as the object exists: ten megabytes.
const KEPT_NOTING: usize = 1 << 17;
/// Most slots that a search for a resting one looks at; if all of these are in use, a new slot is
/// added.
const LOOKS: usize = 16;

/// The number of a slot. A ticket names the same key until the key rests.
///
/// A ticket carries half of the key's hash, so that the slot's place in the table is found without
/// reading the slot.
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

    /// Returns a 64-bit hash for the table, which picks a place by the lower bits and compares the
    /// upper ones; hence the same 32 bits twice.
    fn hash(self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

/// Slots, found by key and by number.
#[derive(Debug)]
pub(super) struct Slots<T> {
    table: HashTable<u32>,
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
    /// Slot at which the next search for a resting one begins.
    next: usize,
    /// Number of keys that do not rest.
    in_use: usize,
    /// Keys in work, in no order. They are few, so the data that change most lie close together.
    in_work: Vec<Working>,
    /// Number of slots from which a new key gets the slot of a resting one.
    kept: usize,
    notes: Option<Notes<T>>,
}

/// Accessors of the slot number that a key stores. The number may belong to another queue or be
/// outdated, so it is checked before use.
#[derive(Debug)]
pub(crate) struct Notes<T> {
    /// Reads the number that was stored last with the key or a clone of it.
    pub(crate) read: fn(&T) -> Option<u32>,
    /// Stores a number with the key.
    pub(crate) write: fn(&T, u32),
}

/// A number that no slot has.
pub(in crate::workqueue) const NOWHERE: u32 = u32::MAX;

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self { read: self.read, write: self.write }
    }
}

/// Slots that are no longer needed, or the key of one; to be dropped outside of locks.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::workqueue) enum Discarded<T> {
    Nothing,
    Key(T),
    Slots(Vec<Entry<T>>),
}

/// A slot with its key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Entry<T> {
    hash: u32,
    /// `None` while the slot is free.
    key: Option<T>,
    /// A clone of the key that came with an add, to be handed to the next worker; only for keys
    /// that store their slot, whose clones are equal in all respects.
    spare: Option<T>,
    slot: Slot,
}

impl<T> Slots<T> {
    /// Returns an empty slab.
    pub(super) fn new(notes: Option<Notes<T>>) -> Self {
        Self::keeping(if notes.is_some() { KEPT_NOTING } else { KEPT }, notes)
    }

    /// Returns an empty slab; from `kept` slots on, a new key gets the slot of a resting one.
    pub(super) fn keeping(kept: usize, notes: Option<Notes<T>>) -> Self {
        Self {
            table: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            next: 0,
            in_use: 0,
            in_work: Vec::new(),
            kept,
            notes,
        }
    }

    /// Number of slots, free ones too.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.entries.len()
    }

    /// Number of keys that do not rest.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Returns a slot.
    pub(super) fn get(&self, ticket: Ticket) -> &Slot {
        &self.entries[ticket.index()].slot
    }

    /// Returns a slot, to change it.
    pub(super) fn get_mut(&mut self, ticket: Ticket) -> &mut Slot {
        &mut self.entries[ticket.index()].slot
    }

    /// Returns the key of a slot for the worker that takes it, `None` if the slot is free, and the
    /// slot, to change it.
    #[inline]
    pub(super) fn entry_mut(&mut self, ticket: Ticket) -> (Option<T>, &mut Slot)
    where
        T: Clone,
    {
        let entry = &mut self.entries[ticket.index()];
        let key = entry.spare.take().or_else(|| entry.key.clone());
        (key, &mut entry.slot)
    }

    /// Returns the turn of a key in its line; `None` also when there is no such key any more.
    pub(super) fn turn(&self, ticket: Ticket) -> Option<u64> {
        match self.find_slot(ticket)?.stage {
            Stage::Ready { turn, .. } => Some(turn),
            Stage::Working { spot } => match self.in_work.get(spot as usize)?.again {
                Again::Now { turn, passed: false, .. } => Some(turn),
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
    pub(super) fn working(&mut self, spot: u32) -> &mut Working {
        &mut self.in_work[spot as usize]
    }

    /// Adds a key to those in work; returns its index.
    #[inline]
    pub(super) fn begin_work(&mut self, ticket: Ticket, since: Nanos) -> u32 {
        let spot = u32::try_from(self.in_work.len()).unwrap_or(u32::MAX);
        self.in_work.push(Working { ticket, since, again: Again::No });
        spot
    }

    /// Removes the key at an index from those in work.
    #[inline]
    pub(super) fn end_work(&mut self, spot: u32) -> Working {
        let ended = self.in_work.swap_remove(spot as usize);
        // `swap_remove` moved the last key to this index.
        if let Some(moved) = self.in_work.get(spot as usize) {
            self.entries[moved.ticket.index()].slot.stage = Stage::Working { spot };
        }
        ended
    }

    /// Returns a slot, if it still exists.
    #[inline]
    pub(super) fn find_slot(&self, ticket: Ticket) -> Option<&Slot> {
        Some(&self.entries.get(ticket.index())?.slot)
    }

    /// Returns the key of a slot; `None` when the slot is free.
    pub(super) fn key(&self, ticket: Ticket) -> Option<&T> {
        self.entries[ticket.index()].key.as_ref()
    }

    /// Returns all slots of keys that do not rest, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Slot)> {
        let numbered = (0_u32..).zip(&self.entries);
        let in_use = numbered.filter(|(_, entry)| !matches!(entry.slot.stage, Stage::Resting));
        in_use
            .map(|(at, entry)| (Ticket { at, hash: entry.hash }, &entry.slot))
            // Stops after the last slot in use: many resting slots may follow.
            .take(self.in_use)
    }

    /// [`rest`](Self::rest) for a key without failures; returns whether that was possible.
    #[inline]
    pub(super) fn rest_plainly(&mut self, ticket: Ticket) -> bool {
        if self.in_use == 1 && self.entries.len() > self.kept {
            // The last key in use: the memory may have to be released, which `rest` does.
            return false;
        }
        self.in_use -= 1;
        self.entries[ticket.index()].slot.stage = Stage::Resting;
        true
    }

    /// Lets a key rest in its slot.
    pub(super) fn rest(&mut self, ticket: Ticket) -> Discarded<T> {
        self.in_use -= 1;
        self.entries[ticket.index()].slot = Slot::resting();
        self.give_back().map_or(Discarded::Nothing, Discarded::Slots)
    }

    /// Lets a key rest and frees its slot for another key.
    #[cold]
    pub(super) fn leave(&mut self, ticket: Ticket) -> Discarded<T> {
        self.in_use -= 1;
        self.entries[ticket.index()].slot = Slot::resting();
        self.forget(ticket);
        if let Some(all) = self.give_back() {
            return Discarded::Slots(all);
        }
        self.free.push(ticket.at);
        // The worker has a clone of its own.
        self.entries[ticket.index()].key.take().map_or(Discarded::Nothing, Discarded::Key)
    }

    /// Returns all slots for release when no key is in use, after a flood of keys or when most of
    /// very many keys are gone.
    fn give_back(&mut self) -> Option<Vec<Entry<T>>> {
        let slots = self.entries.len();
        if self.in_use > 0 || slots <= self.kept {
            return None;
        }
        // Most slots still have a key that may come back: not worth a release.
        if slots <= 2 * self.kept && 2 * self.table.len() > slots {
            return None;
        }
        let new = Self::keeping(self.kept, self.notes.clone());
        Some(std::mem::replace(self, new).entries)
    }

    /// Removes a slot from the table.
    fn forget(&mut self, ticket: Ticket) {
        if let Ok(found) = self.table.find_entry(ticket.hash(), |at| *at == ticket.at) {
            found.remove();
        }
    }

    /// Returns the probable slot of a key. The look-ups of several keys overlap, because none
    /// depends on the result of another.
    #[inline]
    pub(super) fn guess(&self, key: &T, hash: u64) -> u32 {
        if let Some(notes) = &self.notes
            && let Some(noted) = (notes.read)(key)
        {
            return noted;
        }
        self.table.find(Ticket::new(0, hash).hash(), |_| true).map_or(NOWHERE, |at| *at)
    }

    /// Returns whether the key in a slot has this hash.
    #[inline]
    pub(super) fn confirm(&self, guess: u32, hash: u64) -> bool {
        let hash = Ticket::new(0, hash).hash;
        self.entries.get(guess as usize).is_some_and(|entry| entry.hash == hash)
    }
}

impl<T: Eq> Slots<T> {
    /// Returns the slot of `key` and whether the key rested until now. The key is taken unless it
    /// is in use already; the key that is left in its place is to be dropped outside of locks.
    /// `None` when there is no key.
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
        // A guess is only a hint: the key itself decides.
        let at = if is_key(&guess) {
            guess
        } else if let Some(at) = self.table.find(sought.hash(), is_key) {
            self.note(wanted, *at);
            *at
        } else {
            return Some((self.make(key, sought), true));
        };
        let entry = &mut self.entries[at as usize];
        let rested = matches!(entry.slot.stage, Stage::Resting);
        if rested {
            self.in_use += 1;
            // The newer of two equal keys is stored, since equal keys may differ in other fields.
            // Keys that store their slot do not differ, so the newer one becomes the spare and
            // saves a clone.
            let place = if self.notes.is_some() { &mut entry.spare } else { &mut entry.key };
            std::mem::swap(place, key);
        }
        Some((Ticket { at, ..sought }, rested))
    }

    /// Stores a slot's number with the key, whose next add then needs no search of the table.
    fn note(&self, key: &T, at: u32) {
        if let Some(notes) = &self.notes {
            (notes.write)(key, at);
        }
    }

    /// Creates a slot for a key that has none.
    #[cold]
    fn make(&mut self, key: &mut Option<T>, sought: Ticket) -> Ticket {
        let free = self.free.pop();
        let new = Entry { hash: sought.hash, key: key.take(), spare: None, slot: Slot::resting() };
        let at = match free.or_else(|| self.take_resting(key)) {
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
            self.note(key, at);
        }
        let hash_of = |at: &u32| Ticket { at: *at, hash: entries[*at as usize].hash }.hash();
        self.table.insert_unique(sought.hash(), at, hash_of);
        self.in_use += 1;
        Ticket { at, ..sought }
    }

    /// Returns the slot of a resting key when there are very many slots; its key is moved into
    /// `old`.
    fn take_resting(&mut self, old: &mut Option<T>) -> Option<u32> {
        if self.entries.len() < self.kept {
            return None;
        }
        for _ in 0..LOOKS.min(self.entries.len()) {
            let at = self.next % self.entries.len();
            self.next = at + 1;
            let entry = &mut self.entries[at];
            if matches!(entry.slot.stage, Stage::Resting) && entry.key.is_some() {
                *old = entry.key.take();
                let ticket = Ticket { at: u32::try_from(at).ok()?, hash: entry.hash };
                self.forget(ticket);
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

    fn enter<T: Eq>(slots: &mut Slots<T>, key: T, hash: u64) -> (Ticket, bool) {
        let guess = slots.guess(&key, hash);
        let (ticket, rested) = slots.enter(&mut Some(key), hash, guess).expect("a key");
        // A key with another place than `Resting` is in use.
        slots.get_mut(ticket).stage = Stage::Waiting { at: 0, turn: 0 };
        (ticket, rested)
    }

    fn hash_of(key: usize) -> u64 {
        // Some keys share a hash.
        key as u64 % 91
    }

    /// Slots of the keys 0, 1, 2, …, all in use.
    fn slots_of(keys: usize) -> (Slots<usize>, Vec<Ticket>) {
        let mut slots = Slots::keeping(MANY, None);
        let tickets = (0..keys).map(|key| enter(&mut slots, key, hash_of(key)).0).collect();
        (slots, tickets)
    }

    #[test]
    fn a_key_that_rests_keeps_its_slot_and_one_that_is_gone_leaves_it_to_others() {
        let mut slots = Slots::keeping(MANY, None);
        let (first, rested) = enter(&mut slots, "a", 7);
        assert!(rested);
        let mut again = Some("a");
        assert_eq!(slots.enter(&mut again, 7, 0), Some((first, false)));
        assert_eq!(again, Some("a"), "a key that has a slot is not taken");
        assert_eq!(slots.rest(first), Discarded::Nothing);
        assert_eq!((slots.in_use(), enter(&mut slots, "a", 7)), (0, (first, true)));
        assert_eq!(slots.leave(first), Discarded::Key("a"));
        assert_eq!(enter(&mut slots, "b", 7), (first, true));
        assert_eq!((slots.find(&"a", 7), slots.find(&"b", 7)), (None, Some(first)));
        assert_eq!(slots.in_use(), 1);
    }

    #[test]
    fn a_wrong_guess_finds_the_right_slot() {
        let mut slots = Slots::keeping(MANY, None);
        let tickets = ["a", "b", "c"].map(|key| enter(&mut slots, key, 7).0);
        for guess in [0, 1, 2, 3, NOWHERE] {
            for (key, ticket) in ["a", "b", "c"].into_iter().zip(tickets) {
                assert_eq!(slots.enter(&mut Some(key), 7, guess), Some((ticket, false)));
            }
        }
    }

    #[test]
    fn what_a_key_notes_is_guessed_first_and_noted_when_it_is_found_elsewhere() {
        thread_local!(static NOTED: std::cell::Cell<Option<u32>> = const { std::cell::Cell::new(None) });
        let notes = Notes { read: |_| NOTED.get(), write: |_, at| NOTED.set(Some(at)) };
        let mut slots = Slots::keeping(MANY, Some(notes));
        assert_eq!(slots.guess(&"a", 7), NOWHERE);
        let first = enter(&mut slots, "a", 7).0;
        assert_eq!(NOTED.get(), Some(first.at));
        NOTED.set(Some(9));
        assert_eq!((slots.guess(&"a", 7), slots.confirm(9, 7)), (9, false));
        assert_eq!(enter(&mut slots, "a", 7), (first, false));
        assert_eq!((NOTED.get(), slots.confirm(first.at, 7)), (Some(first.at), true));
    }

    #[test]
    fn after_a_flood_of_keys_the_memory_is_given_back() {
        let (mut slots, tickets) = slots_of(2 * MANY + 1);
        let (last, others) = tickets.split_last().expect("some");
        for ticket in others {
            assert!(slots.rest_plainly(*ticket));
        }
        assert!(!slots.rest_plainly(*last), "the last one looks whether to give back");
        assert!(matches!(slots.rest(*last), Discarded::Slots(all) if all.len() == 2 * MANY + 1));
        assert_eq!((slots.in_use(), slots.entries.capacity(), slots.free.capacity()), (0, 0, 0));
        assert_eq!(slots.find(&0, 0), None);
    }

    #[test]
    fn when_most_of_very_many_keys_are_gone_their_memory_is_given_back_with_their_keys() {
        let (mut slots, tickets) = slots_of(MANY + 20);
        for (key, ticket) in tickets.iter().enumerate().skip(1) {
            assert_eq!(slots.leave(*ticket), Discarded::Key(key));
        }
        // The last key is among the slots that the caller drops.
        let Discarded::Slots(all) = slots.leave(tickets[0]) else { panic!("kept") };
        assert_eq!(all.into_iter().filter_map(|entry| entry.key).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn of_very_many_keys_a_new_one_gets_the_slot_of_one_that_rests() {
        let (mut slots, tickets) = slots_of(MANY);
        for key in [5, 7] {
            assert_eq!(slots.rest(tickets[key]), Discarded::Nothing);
        }
        for (new, old) in [(MANY, 5), (MANY + 1, 7)] {
            let mut key = Some(new);
            let (ticket, _) = slots.enter(&mut key, hash_of(new), NOWHERE).expect("a key");
            slots.get_mut(ticket).stage = Stage::Waiting { at: 0, turn: 0 };
            assert_eq!((ticket.at, key), (tickets[old].at, Some(old)), "who had it is handed out");
            assert_eq!(slots.find(&old, hash_of(old)), None);
        }
        // All slots are in use: a new one is added.
        assert_eq!(enter(&mut slots, MANY + 2, hash_of(MANY + 2)).0.at as usize, MANY);
        assert_eq!((slots.in_use(), slots.table.len()), (MANY + 1, MANY + 1));
    }

    #[test]
    fn slots_are_as_many_as_were_in_use_at_once_or_as_are_kept() {
        // One key never rests, like a key with a delay.
        let (mut slots, tickets) = slots_of(MANY + MANY / 2);
        tickets.iter().skip(1).for_each(|ticket| drop(slots.rest(*ticket)));
        for key in 0..20 * MANY {
            let ticket = enter(&mut slots, 1000 + key, hash_of(key)).0;
            assert_eq!(slots.rest(ticket), Discarded::Nothing);
        }
        assert_eq!(slots.entries.len(), MANY + MANY / 2);
    }

    #[test]
    fn who_lists_what_is_in_use_does_not_look_at_what_rests_behind_it() {
        let (mut slots, tickets) = slots_of(MANY);
        tickets.iter().skip(3).for_each(|ticket| drop(slots.rest(*ticket)));
        assert_eq!(slots.iter().map(|(ticket, _)| ticket).collect::<Vec<_>>(), tickets[..3]);
        slots.in_use = 0;
        assert_eq!(slots.iter().count(), 0);
    }
}
