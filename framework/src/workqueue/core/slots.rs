//! A slab of slots and a hash table that finds a key's slot; its order shows nowhere. Whoever has a key
//! knows its hash: it is made before the lock is taken.
//!
//! A key that rests keeps its slot, for the next time: what comes back costs a look into the table, and
//! no change of it. When there are very many, a new key gets the slot of one that rests.

use hashbrown::HashTable;

use super::slot::{Again, Nanos, Place as At, Slot, Working};

/// So many slots there are before a new key gets that of one that rests. Who has a key may never come back
/// with it.
const KEPT: usize = 4096;
/// The same where keys are those of objects, which come back as long as there is the object: ten megabytes.
const KEPT_NOTING: usize = 1 << 17;
/// So many slots are looked at for one that rests; when all are in use, there are more from then on.
const LOOKS: usize = 16;

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
    /// The slot that is looked at next for one that rests.
    next: usize,
    /// Keys that do not rest.
    in_use: usize,
    /// Keys in work, in no order. There are few, so that what changes most lies close together.
    in_work: Vec<Working>,
    /// So many slots there are before a new key gets that of one that rests.
    kept: usize,
    notes: Option<Notes<T>>,
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

impl<T> Clone for Notes<T> {
    fn clone(&self) -> Self {
        Self { read: self.read, write: self.write }
    }
}

/// Slots that are needed no more, or the key of one; to be dropped outside of locks.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(in crate::workqueue) enum Discarded<T> {
    Nothing,
    Key(T),
    Slots(Vec<Entry<T>>),
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::workqueue) struct Entry<T> {
    hash: u32,
    /// `None` while the slot is free.
    key: Option<T>,
    /// A clone of it that came with an add, for who works on it next; only of keys that note their slot,
    /// which are equal in all.
    spare: Option<T>,
    slot: Slot,
}

impl<T> Slots<T> {
    /// No slots.
    pub(super) fn new(notes: Option<Notes<T>>) -> Self {
        Self::keeping(if notes.is_some() { KEPT_NOTING } else { KEPT }, notes)
    }

    /// No slots; when there are `kept`, a new key gets that of one that rests.
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

    /// All slots of keys that do not rest, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &Slot)> {
        let numbered = (0_u32..).zip(&self.entries);
        let in_use = numbered.filter(|(_, entry)| !matches!(entry.slot.place, At::Resting));
        in_use
            .map(|(at, entry)| (Ticket { at, hash: entry.hash }, &entry.slot))
            // Behind the last one there may be many that rest.
            .take(self.in_use)
    }

    /// [`rest`](Self::rest) for a key of which nothing is known but that it is in work; tells whether it
    /// could be done like that.
    #[inline]
    pub(super) fn rest_plainly(&mut self, ticket: Ticket) -> bool {
        if self.in_use == 1 && self.entries.len() > self.kept {
            // It may be time to give back.
            return false;
        }
        self.in_use -= 1;
        self.entries[ticket.index()].slot.place = At::Resting;
        true
    }

    /// The key rests, and keeps its slot.
    pub(super) fn rest(&mut self, ticket: Ticket) -> Discarded<T> {
        self.in_use -= 1;
        self.entries[ticket.index()].slot = Slot::resting();
        self.give_back().map_or(Discarded::Nothing, Discarded::Slots)
    }

    /// The key rests, and leaves its slot to another.
    #[cold]
    pub(super) fn leave(&mut self, ticket: Ticket) -> Discarded<T> {
        self.in_use -= 1;
        self.entries[ticket.index()].slot = Slot::resting();
        self.forget(ticket);
        if let Some(all) = self.give_back() {
            return Discarded::Slots(all);
        }
        self.free.push(ticket.at);
        // Who worked on it has the other one.
        self.entries[ticket.index()].key.take().map_or(Discarded::Nothing, Discarded::Key)
    }

    /// When nothing is in use, after a flood of keys, or when most of very many are gone.
    fn give_back(&mut self) -> Option<Vec<Entry<T>>> {
        let slots = self.entries.len();
        if self.in_use > 0 || slots <= self.kept {
            return None;
        }
        if slots <= 2 * self.kept && 2 * self.table.len() > slots {
            return None;
        }
        let new = Self::keeping(self.kept, self.notes.clone());
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
        if let Some(notes) = &self.notes
            && let Some(noted) = (notes.read)(key)
        {
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
    /// The slot of `key`, whose hash that is, and whether the key rested until now. The key is taken unless
    /// it does not rest; what is left instead is to be dropped outside of locks. `None` when there is no key.
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
            self.note(wanted, *at);
            *at
        } else {
            return Some((self.make(key, sought), true));
        };
        let entry = &mut self.entries[at as usize];
        let rested = matches!(entry.slot.place, At::Resting);
        if rested {
            self.in_use += 1;
            // The newer one counts, where equal ones may differ. Where they do not, it need not be cloned.
            let place = if self.notes.is_some() { &mut entry.spare } else { &mut entry.key };
            std::mem::swap(place, key);
        }
        Some((Ticket { at, ..sought }, rested))
    }

    fn note(&self, key: &T, at: u32) {
        if let Some(notes) = &self.notes {
            (notes.write)(key, at);
        }
    }

    /// A slot for a key that has none.
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

    /// The slot of a key that rests, when there are very many; the key is put out of it.
    fn take_resting(&mut self, old: &mut Option<T>) -> Option<u32> {
        if self.entries.len() < self.kept {
            return None;
        }
        for _ in 0..LOOKS.min(self.entries.len()) {
            let at = self.next % self.entries.len();
            self.next = at + 1;
            let entry = &mut self.entries[at];
            if matches!(entry.slot.place, At::Resting) && entry.key.is_some() {
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
        // What tells a key that does not rest from one that does.
        slots.get_mut(ticket).place = At::Waiting { at: 0, turn: 0 };
        (ticket, rested)
    }

    fn hash_of(key: usize) -> u64 {
        // Some are the same.
        key as u64 % 91
    }

    /// Slots of keys from 0 on, all in use.
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
        // The last key is among what is to be dropped elsewhere.
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
            slots.get_mut(ticket).place = At::Waiting { at: 0, turn: 0 };
            assert_eq!((ticket.at, key), (tickets[old].at, Some(old)), "who had it is handed out");
            assert_eq!(slots.find(&old, hash_of(old)), None);
        }
        // All are in use: there is one more.
        assert_eq!(enter(&mut slots, MANY + 2, hash_of(MANY + 2)).0.at as usize, MANY);
        assert_eq!((slots.in_use(), slots.table.len()), (MANY + 1, MANY + 1));
    }

    #[test]
    fn slots_are_as_many_as_were_in_use_at_once_or_as_are_kept() {
        // One of them never rests, as a key with a delay does not.
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
