//! JSON bytes from and for the API server: split, scanned and framed, without typed decoding.
//!
//! Typed decoding is the largest cost of a cache, so a list is cut into items and an event into the
//! object during the transfer, and only an object's metadata is read. Nothing here waits, decodes a
//! kind or knows about connections.

mod decode;
mod framing;
mod metadata_ref;
mod metadata_scan;
mod paths;
mod retain;
mod scanner;
#[doc(hidden)]
pub mod status;
mod strip;

#[doc(hidden)]
pub use decode::{Undecodable, partial_decode, times};
pub use framing::{EventType, Frame, FrameDecoder, StreamPiece};
#[doc(hidden)]
pub use framing::{ListMeta, ListSplitter, MAX_PIECE};
#[doc(hidden)]
pub use metadata_ref::MetadataOffsets;
pub use metadata_ref::{MetadataRef, OwnerRef};
#[doc(hidden)]
pub use metadata_scan::MetadataScan;
#[doc(hidden)]
pub use paths::{PathTree, Scalar, values_at};
#[doc(hidden)]
pub use retain::{FieldMask, is_kept_metadata};
pub use scanner::Malformed;
#[doc(hidden)]
pub use strip::{value_at_path, without};

/// Returns the text of a JSON document, which is UTF-8 (RFC 8259).
///
/// Kinds are decoded from texts alone: a second kind of input would be a second copy of the code
/// that decodes kinds, in every program. A single check that all of the document is UTF-8 also
/// costs a fifth of checking each text.
#[doc(hidden)]
pub fn text_of(json: &[u8]) -> serde_json::Result<&str> {
    std::str::from_utf8(json).map_err(|error| {
        // serde_json reports the line of a fault; faults that serde_json accepts are reported here.
        let refused = serde_json::from_slice::<serde_json::Value>(json).err();
        refused.unwrap_or_else(|| serde::de::Error::custom(error))
    })
}

#[cfg(test)]
mod tests;
