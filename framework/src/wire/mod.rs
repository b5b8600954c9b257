//! Bytes from and for the API server: split, skimmed and framed, without typed decoding.
//!
//! Typed decoding is what a cache costs most, so a list is cut into its items and an event into its
//! object while they stream, and only an object's metadata is read. Nothing here waits, decodes a
//! kind or knows about connections.

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

#[cfg(test)]
mod tests;
