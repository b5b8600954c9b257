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
pub(in crate::store) struct ObjectSlot {
    /// The object; replaced as a whole, so that readers who hold the former object keep that
    /// object.
    pub(in crate::store) object: Arc<Object>,
    /// The last run that showed the object.
    ///
    /// An object whose run is older than a complete list was not in that list, and is swept.
    pub(in crate::store) run: ListGeneration,
}

/// All objects of a store.
///
/// A place keeps the number while the object is there: indexes name objects by numbers of four
/// bytes.
pub(in crate::store) struct Slots {
    /// Objects by number; `None` is a free place.
    places: Vec<Option<ObjectSlot>>,
    /// Numbers of the free places, the last number to be used first.
    free: Vec<Id>,
    /// Numbers by the hash of the key.
    ids: Ids,
    /// Seeded per store; the store's indexes use the same.
    hasher: Hasher,
}

/// The parts of a key, borrowed, so that a lookup builds no key.
pub(in crate::store) type Parts<'a> = (ClusterId, Option<&'a str>, &'a str);

/// Borrows the parts of a key.
pub(in crate::store) fn parts(key: &ObjectKey) -> Parts<'_> {
    (key.cluster(), key.namespace(), key.name())
}

impl Slots {
    /// Creates an empty slab.
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

    /// Returns the hash of a key; the cluster takes no part, as the cluster is the same for all.
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

    /// Returns the object at a place with the run; `None` for a free place.
    pub(in crate::store) fn at(&self, id: Id) -> Option<&ObjectSlot> {
        self.places.get(id as usize)?.as_ref()
    }

    /// As [`at`](Self::at), for a change. The key of the object must stay, since `ids` has the
    /// key's hash.
    pub(in crate::store) fn at_mut(&mut self, id: Id) -> Option<&mut ObjectSlot> {
        self.places.get_mut(id as usize)?.as_mut()
    }

    /// Returns the object with that key, and its run.
    pub(in crate::store) fn get(&self, key: Parts<'_>) -> Option<&ObjectSlot> {
        self.at(self.find(key)?)
    }

    /// Returns the cached key of each incoming object that has no other reference; other objects
    /// have the cached key already, or keep their own.
    ///
    /// In a store larger than the processor's cache each step from hash to place to object to text
    /// waits for the memory of the step before. Here each step is made for the whole batch before
    /// the next, so that a batch waits for about as long as a single object would.
    pub(in crate::store) fn keys_of(
        &self,
        deltas: &[Delta<Observed, StreamMark>],
    ) -> Vec<Option<ObjectKey>> {
        let coming = |delta: &Delta<Observed, StreamMark>| match delta {
            // An object that others hold cannot be changed, so the key cannot be replaced.
            Delta::Put(seen) | Delta::Delete(seen) => Arc::strong_count(&seen.object) == 1,
            Delta::StreamMark(_) => false,
        };
        if !deltas.iter().any(coming) {
            return Vec::new();
        }
        let likely = |delta: &Delta<Observed, StreamMark>| match delta {
            Delta::Put(seen) | Delta::Delete(seen) if coming(delta) => {
                let hash = self.hash(parts(seen.object.key()));
                // By the hash alone: a comparison of keys would read the object, for which the
                // second step is.
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

    /// Returns the object at a place.
    pub(in crate::store) fn object(&self, id: Id) -> Option<&Arc<Object>> {
        self.at(id).map(|slot| &slot.object)
    }

    /// Iterates over the occupied places, in no order that callers may expose.
    pub(in crate::store) fn iter(&self) -> impl Iterator<Item = (Id, &ObjectSlot)> {
        self.places.iter().enumerate().filter_map(|(id, slot)| Some((id as Id, slot.as_ref()?)))
    }

    /// Inserts an object under a new key and returns its place.
    ///
    /// The caller has looked the key up: a second object under the same key would not be found.
    pub(in crate::store) fn insert(&mut self, hash: Hash, slot: ObjectSlot) -> Id {
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
    ///
    /// Indexes must have released the number before: the next object may get that number at once.
    pub(in crate::store) fn remove(&mut self, id: Id) -> Option<ObjectSlot> {
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
        self.places.capacity() * size_of::<Option<ObjectSlot>>()
            + self.free.capacity() * size_of::<Id>()
            + self.ids.resident()
    }
}
