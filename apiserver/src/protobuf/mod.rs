//! Protobuf: the second form of the built-in kinds, beside JSON.
//!
//! A body is turned into the same value that the JSON form would give, and an answer is written
//! from the same value: no other module knows of messages. A body or answer is an envelope, `k8s\0`
//! and a message (`runtime.Unknown`) with kind, version and the bytes of the object.
//!
//! The forms of the fields are marks in `typed/builtin.types`, so that the names of fields stand
//! there once.

// DESIGN.md, 145: Protobuf is a form of the same values, read and written by one table

mod message;
mod read;
mod special;
#[cfg(test)]
mod tests;
pub(crate) mod wire;
mod write;

use serde_json::{Value, json};

use message::messages;

/// Beginning of every envelope.
const MAGIC: &[u8] = b"k8s\0";

/// Most messages within each other, as deep as JSON may be.
const DEEPEST: usize = 128;

/// Reason why bytes are no object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Version and kind of the object, if the envelope could be read.
    pub kind: Option<(String, String)>,
    /// The error, in the words of Go's decoder.
    pub why: String,
}

/// Reads an object as JSON; `api_version` and `kind` count if the envelope has none.
///
/// An object of a kind without messages is read as kind and version alone.
pub fn decode(bytes: &[u8], api_version: &str, kind: &str) -> Result<Value, DecodeError> {
    let unnamed = |why| DecodeError { kind: None, why };
    let mut envelope = read::Envelope::of(bytes).map_err(unnamed)?;
    if envelope.kind.is_empty() {
        envelope.kind = kind.to_owned();
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = api_version.to_owned();
    }
    envelope.open(0).map_err(|why| {
        let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
        DecodeError { kind: Some((version.to_owned(), envelope.kind.clone())), why }
    })
}

/// Returns an object in an envelope; `None` if there is no message for the kind.
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let message = messages().of_kind(api_version, kind)?;
    let mut out = MAGIC.to_vec();
    wire::put_inner(&mut out, 1, |out| {
        wire::put_bytes(out, 1, api_version.as_bytes());
        wire::put_bytes(out, 2, kind.as_bytes());
    });
    wire::put_inner(&mut out, 2, |out| write::message(out, message, object));
    // Encoding and media type of the bytes, which are empty.
    wire::put_bytes(&mut out, 3, b"");
    wire::put_bytes(&mut out, 4, b"");
    Some(out)
}

/// Bytes of the length before an event.
pub(crate) const LENGTH: usize = 4;

/// Returns an event of a watch with the length before; `None` if there is no message for the
/// object's kind.
pub(crate) fn encode_event(name: &str, object: &Value) -> Option<Vec<u8>> {
    let object = encode(object)?;
    let mut out = vec![0; LENGTH];
    wire::put_bytes(&mut out, 1, name.as_bytes());
    wire::put_inner(&mut out, 2, |out| wire::put_bytes(out, 1, &object));
    let length = u32::try_from(out.len() - LENGTH).ok()?;
    out.get_mut(..LENGTH)?.copy_from_slice(&length.to_be_bytes());
    Some(out)
}

/// Returns an object that has nothing but kind and version.
fn bare(api_version: &str, kind: &str) -> Value {
    json!({"kind": kind, "apiVersion": api_version})
}
