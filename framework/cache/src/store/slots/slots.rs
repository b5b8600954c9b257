//! The objects of a store: a slab of numbered places, found by key.

// DESIGN.md, 26: Store slots lie in a slab; answers are sorted on reading

use std::sync::Arc;

use super::hash::{Hash, Hasher, Ids};
use crate::delta::Delta;
use crate::store::object::Object;
use crate::store::observed::{ListGeneration, Observed, StreamMark};
use windlass_core::resource::{ClusterId, ObjectKey};

/// Number of an object's place; reused after the object is gone.
pub(in crate::store) type Id = u32;

/// An object in the store.
pub(in crate::store) struct Slot {
    pub(in crate::store) object: Arc<Object>,
    /// The last run that showed the object.
    pub(in crate::store) run: ListGeneration,
}

/// All objects of a store.
pub(in crate::store) struct Slots {
    places: Vec<Option<Slot>>,
    free: Vec<Id>,
    ids: Ids,
    hasher: Hasher,
}

/// The parts of a key, borrowed, so that a lookup builds no key.
pub(in crate::store) type Parts<'a> = (ClusterId, Option<&'a str>, &'a str);

/// Borrows the parts of a key.
pub(in crate::store) fn parts(key: &ObjectKey) -> Parts<'_> {
    (key.cluster(), key.namespace(), key.name())
}

impl Slots {
    pub(in crate::store) fn new(hasher: Hasher) -> Self {
        Self { places: Vec::new(), free: Vec::new(), ids: Ids::default(), hasher }
    }

    /// Returns the number of objects.
    pub(in crate::store) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Number of places; every id is below it.
    pub(in crate::store) fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns the hash of a key; the cluster takes no part, as it is the same for all.
    pub(in crate::store) fn hash(&self, key: Parts<'_>) -> Hash {
        self.hasher.parts(key.1, key.2)
    }

    /// Returns the place of the object with that key.
    pub(in crate::store) fn find(&self, key: Parts<'_>) -> Option<Id> {
        self.find_hashed(self.hash(key), key)
    }

    /// As [`find`](Self::find), with the hash of the key.
    pub(in crate::store) fn find_hashed(&self, hash: Hash, key: Parts<'_>) -> Option<Id> {
        self.ids.find(hash, |id| self.at(id).is_some_and(|slot| parts(slot.object.key()) == key))
    }

    pub(in crate::store) fn at(&self, id: Id) -> Option<&Slot> {
        self.places.get(id as usize)?.as_ref()
    }

    pub(in crate::store) fn at_mut(&mut self, id: Id) -> Option<&mut Slot> {
        self.places.get_mut(id as usize)?.as_mut()
    }

    pub(in crate::store) fn get(&self, key: Parts<'_>) -> Option<&Slot> {
        self.at(self.find(key)?)
    }

    /// Returns the cached key of each incoming object that has no other reference; other objects
    /// have the cached key already, or keep their own.
    ///
    /// In a store larger than the processor's cache each step from hash to place to object to text
    /// waits for the memory of the one before. Here each step is made for the whole batch before
    /// the next, so that a batch waits for about as long as one object would.
    pub(in crate::store) fn keys_of(
        &self,
        deltas: &[Delta<Observed, StreamMark>],
    ) -> Vec<Option<ObjectKey>> {
        let coming = |delta: &Delta<Observed, StreamMark>| match delta {
            Delta::Put(seen) | Delta::Delete(seen) => Arc::strong_count(&seen.object) == 1,
            Delta::StreamMark(_) => false,
        };
        if !deltas.iter().any(coming) {
            return Vec::new();
        }
        let likely = |delta: &Delta<Observed, StreamMark>| match delta {
            Delta::Put(seen) | Delta::Delete(seen) if coming(delta) => {
                let hash = self.hash(parts(seen.object.key()));
                Some((hash, self.ids.find(hash, |_| true)?))
            }
            _ => None,
        };
        let likely: Vec<Option<(Hash, Id)>> = deltas.iter().map(likely).collect();
        let mut near = 0;
        for (_, id) in likely.iter().flatten() {
            near ^= self.at(*id).map_or(0, |slot| slot.object.prefetch());
        }
        // The reads above only load cache lines; without this the compiler would remove them.
        std::hint::black_box(near);
        let found = |(delta, likely): (&Delta<Observed, StreamMark>, &Option<(Hash, Id)>)| {
            let (Delta::Put(seen) | Delta::Delete(seen)) = delta else { return None };
            let id = self.find_hashed(likely.as_ref()?.0, parts(seen.object.key()))?;
            self.object(id).map(|object| object.key().clone())
        };
        deltas.iter().zip(&likely).map(found).collect()
    }

    pub(in crate::store) fn object(&self, id: Id) -> Option<&Arc<Object>> {
        self.at(id).map(|slot| &slot.object)
    }

    /// Iterates over the occupied places, in no order that callers may expose.
    pub(in crate::store) fn iter(&self) -> impl Iterator<Item = (Id, &Slot)> {
        self.places.iter().enumerate().filter_map(|(id, slot)| Some((id as Id, slot.as_ref()?)))
    }

    /// Inserts an object under a new key and returns its place.
    pub(in crate::store) fn insert(&mut self, hash: Hash, slot: Slot) -> Id {
        let id = match self.free.pop() {
            Some(id) => {
                self.places[id as usize] = Some(slot);
                id
            }
            None => {
                self.places.push(Some(slot));
                (self.places.len() - 1) as Id
            }
        };
        self.ids.insert(hash, id);
        id
    }

    /// Removes the object at a place.
    pub(in crate::store) fn remove(&mut self, id: Id) -> Option<Slot> {
        let slot = self.places.get_mut(id as usize)?.take()?;
        self.ids
            .remove(self.hasher.parts(slot.object.key().namespace(), slot.object.key().name()), id);
        self.free.push(id);
        if self.free.len() == self.places.len() {
            // The last object is gone: free the memory of the peak.
            (self.places, self.free) = (Vec::new(), Vec::new());
        }
        Some(slot)
    }

    /// Bytes of the slab, without the objects.
    pub(in crate::store) fn resident(&self) -> usize {
        self.places.capacity() * size_of::<Option<Slot>>()
            + self.free.capacity() * size_of::<Id>()
            + self.ids.resident()
    }
}
