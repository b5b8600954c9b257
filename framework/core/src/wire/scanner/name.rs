//! Comparison of member names, written with or without escapes: Go writes `a&b` as `a\u0026b`.

use memchr::memchr;

/// Whether `raw`, the bytes between the quotes, is the name `wanted`.
pub(in crate::wire) fn is_name(raw: &[u8], wanted: &str) -> bool {
    // An escape is longer than the character that the escape encodes.
    let is_escaped = || raw.len() > wanted.len() && memchr(b'\\', raw).is_some();
    raw == wanted.as_bytes() || (is_escaped() && plain(raw).as_deref() == Some(wanted))
}

/// Decodes the escapes; `None` if the bytes are no JSON string.
fn plain(raw: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", raw, b"\""].concat()).ok()
}
