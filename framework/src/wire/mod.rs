//! Bytes from and for the API server: split, skimmed and framed, without typed decoding.
//!
//! Typed decoding is what a cache costs most, so a list is cut into its items and an event into its
//! object while they stream, and only an object's metadata is read. Nothing here waits, decodes a
//! kind or knows about connections.

mod ask;
mod carry;
mod cut;
mod explain;
mod frame;
mod head;
pub(crate) mod lean;
mod list;
mod marks;
mod members;
mod name;
mod only;
mod paths;
mod scan;
mod skim;
pub(crate) mod status;
pub(crate) mod times;

pub(crate) use ask::{Ask, Fault};
pub(crate) use carry::MAX_PIECE;
pub use carry::Part;
pub(crate) use cut::{object_at_path, without};
pub(crate) use explain::Undecodable;
pub use frame::{EventType, Frame, FrameDecoder};
pub(crate) use head::Outline;
pub use head::{Head, OwnerRef};
pub(crate) use list::{ListMeta, ListSplitter};
pub(crate) use only::{Only, is_of_head};
pub(crate) use paths::{PathTree, Scalar, values_at};
pub use scan::Malformed;
pub(crate) use skim::Skim;

/// The text of a JSON document, which is UTF-8 (RFC 8259).
///
/// Kinds are decoded from texts alone: a second kind of input would be a second copy of the code that
/// decodes them, in every program. To look once whether all of it is UTF-8 also costs a fifth of looking at
/// each text.
pub(crate) fn text_of(json: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(json).map_err(|error| {
        // serde_json says in which line; what it does not mind is minded here.
        let refused = serde_json::from_slice::<serde_json::Value>(json).err();
        refused.unwrap_or_else(|| serde::de::Error::custom(error))
    })
}

#[cfg(test)]
mod tests;
