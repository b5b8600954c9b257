//! The slab of a store's objects, and the hashes by which keys and texts are found.

mod hash;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod slots;

pub(in crate::store) use hash::{Hash, Hasher, IdSet, Ids};
pub(in crate::store) use slots::{Id, ObjectSlot, Parts, Slots, parts};
