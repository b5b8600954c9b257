//! Objects and the memory that they take up.
//!
//! An object has a key, the offsets of the metadata, and the content in a kept form. Buffers,
//! blocks and decoded values are pooled or shared per store. Nothing here knows the store.

mod applied_fields;
mod buffer_pool;
#[cfg(feature = "cold")]
mod cold;
mod content;
mod decoded;
mod decoded_cache;
mod detached;
mod interned_meta;
mod invalid;
#[expect(clippy::module_inception, reason = "the folder is named after its main type")]
mod object;
mod object_pool;
mod projected_fields;

pub use applied_fields::FieldTree;
#[cfg(feature = "cold")]
pub(in crate::store) use buffer_pool::{Buffer, BufferPool};
#[cfg(feature = "cold")]
pub(in crate::store) use cold::{
    Cold, CompressionShared as ColdShared, Dictionary, LENGTHS, Readers,
};
pub(in crate::store) use content::ObjectContent;
pub(in crate::store) use decoded::{DecodedObject, SharedValue};
pub(in crate::store) use decoded_cache::Decoded;
pub(in crate::store) use detached::Path;
pub(in crate::store) use interned_meta::InternedMeta;
pub use invalid::Invalid;
pub(in crate::store) use invalid::{InvalidChange, InvalidSink};
pub use object::Object;
pub(in crate::store) use object::StoreShared;
pub(in crate::store) use projected_fields::ProjectedFields;
