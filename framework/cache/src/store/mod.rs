//! The cache: objects by key and by index, always consistent.
//!
//! Objects are stored as the compact bytes that came over the wire; an object's [`MetadataRef`] is
//! a view on these bytes. Typed values cost ten times the memory of their bytes and most are never
//! read, so an object is decoded on the first read and the value is shared for as long as a reader
//! holds it. Indexes on field paths do not decode either.
//!
//! Writes of this process are overlaid on the state that the watch has shown, for at most 10 s, so
//! that a reconcile sees the own writes. The store does no I/O and runs no tasks: the informer
//! feeds the store.

// DESIGN.md, 110: The store is layers of folders

mod cache;
mod encoding;
mod index;
mod object;
mod observed;
mod slots;
mod state;
#[cfg(test)]
mod tests;
mod version;
mod view;

pub use cache::StoreStats;
#[doc(hidden)]
pub use cache::{Sizes, StoreCore};
#[doc(hidden)]
pub use encoding::StoreSettings;
pub use encoding::{Representation, Transform};
#[doc(hidden)]
pub use index::IndexProbe;
pub use index::{Index, IndexValue};
pub use object::Invalid;
#[doc(hidden)]
pub use object::{FieldTree, Object};
#[doc(hidden)]
pub use observed::{BatchOutcome, ListGeneration, MarkKind, Observed, StoreEvent, StreamMark};
#[doc(hidden)]
pub use state::Unconfirmed;
pub(crate) use version::order;
pub use view::{Cached, Lister, NamespaceLister, Snapshot, Store};

pub use windlass_core::wire::{MetadataRef, OwnerRef};
