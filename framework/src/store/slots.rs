//! Where objects stand: a slab of numbered places, found by key.

use std::sync::Arc;

use super::apply::{Mark, Run, Sighting};
use super::hash::{Hash, Hasher, Ids};
use super::object::Object;
use crate::delta::Delta;
use crate::resource::{ClusterId, ObjectKey};

/// The place of an object; used again after the object is gone.
pub(super) type Id = u32;

/// An object in the store.
pub(super) struct Slot {
    pub(super) object: Arc<Object>,
    /// The last run that saw it.
    pub(super) run: Run,
}

/// All objects of a store.
pub(super) struct Slots {
    places: Vec<Option<Slot>>,
    free: Vec<Id>,
    ids: Ids,
    hasher: Hasher,
}

/// The parts of a key, borrowed: lets a key be found without building one.
pub(super) type Parts<'a> = (ClusterId, Option<&'a str>, &'a str);

pub(super) fn parts(key: &ObjectKey) -> Parts<'_> {
    (key.cluster(), key.namespace(), key.name())
}

impl Slots {
    pub(super) fn new(hasher: Hasher) -> Self {
        Self { places: Vec::new(), free: Vec::new(), ids: Ids::default(), hasher }
    }

    /// Number of objects.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Number of places; every id is below it.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    pub(super) fn hash(&self, key: Parts<'_>) -> Hash {
        self.hasher.parts(key.1, key.2)
    }

    /// Where the object of that key stands.
    pub(super) fn find(&self, key: Parts<'_>) -> Option<Id> {
        self.find_hashed(self.hash(key), key)
    }

    pub(super) fn find_hashed(&self, hash: Hash, key: Parts<'_>) -> Option<Id> {
        self.ids.find(hash, |id| self.at(id).is_some_and(|slot| parts(slot.object.key()) == key))
    }

    pub(super) fn at(&self, id: Id) -> Option<&Slot> {
        self.places.get(id as usize)?.as_ref()
    }

    pub(super) fn at_mut(&mut self, id: Id) -> Option<&mut Slot> {
        self.places.get_mut(id as usize)?.as_mut()
    }

    pub(super) fn get(&self, key: Parts<'_>) -> Option<&Slot> {
        self.at(self.find(key)?)
    }

    /// The keys under which objects are cached that come and are held by nobody else; the others have
    /// the cached key already, or keep their own.
    ///
    /// In a store larger than the processor's memory each step from hash to place to object to text waits
    /// for the one before. Here each is made for all before the next, so that a batch waits for about as
    /// long as one object would.
    pub(super) fn keys_of(&self, deltas: &[Delta<Sighting, Mark>]) -> Vec<Option<ObjectKey>> {
        let coming = |delta: &Delta<Sighting, Mark>| match delta {
            Delta::Put(seen) | Delta::Delete(seen) => Arc::strong_count(&seen.object) == 1,
            Delta::Mark(_) => false,
        };
        if !deltas.iter().any(coming) {
            return Vec::new();
        }
        let likely = |delta: &Delta<Sighting, Mark>| match delta {
            Delta::Put(seen) | Delta::Delete(seen) if coming(delta) => {
                let hash = self.hash(parts(seen.object.key()));
                Some((hash, self.ids.find(hash, |_| true)?))
            }
            _ => None,
        };
        let likely: Vec<Option<(Hash, Id)>> = deltas.iter().map(likely).collect();
        let mut near = 0;
        for (_, id) in likely.iter().flatten() {
            near ^= self.at(*id).map_or(0, |slot| slot.object.nearby());
        }
        std::hint::black_box(near);
        let found = |(delta, likely): (&Delta<Sighting, Mark>, &Option<(Hash, Id)>)| {
            let (Delta::Put(seen) | Delta::Delete(seen)) = delta else { return None };
            let id = self.find_hashed(likely.as_ref()?.0, parts(seen.object.key()))?;
            self.object(id).map(|object| object.key().clone())
        };
        deltas.iter().zip(&likely).map(found).collect()
    }

    pub(super) fn object(&self, id: Id) -> Option<&Arc<Object>> {
        self.at(id).map(|slot| &slot.object)
    }

    /// The occupied places, in no order that may show.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &Slot)> {
        self.places.iter().enumerate().filter_map(|(id, slot)| Some((id as Id, slot.as_ref()?)))
    }

    /// Gives a new key a place.
    pub(super) fn insert(&mut self, hash: Hash, slot: Slot) -> Id {
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

    /// Frees a place.
    pub(super) fn remove(&mut self, id: Id) -> Option<Slot> {
        let slot = self.places.get_mut(id as usize)?.take()?;
        self.ids
            .remove(self.hasher.parts(slot.object.key().namespace(), slot.object.key().name()), id);
        self.free.push(id);
        if self.free.len() == self.places.len() {
            // Everything is gone.
            (self.places, self.free) = (Vec::new(), Vec::new());
        }
        Some(slot)
    }

    /// Bytes that the slab takes up, without the objects.
    pub(super) fn resident(&self) -> usize {
        self.places.capacity() * size_of::<Option<Slot>>()
            + self.free.capacity() * size_of::<Id>()
            + self.ids.resident()
    }
}
