//! Percent-encoding of the parts of a URL, as Go's `net/url` allows and writes them.

use super::super::ip::quote_bytes;

/// The part of a URL that decides which bytes are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UrlPart {
    Path,
    Host,
    Zone,
    UserPassword,
    QueryComponent,
    Fragment,
}

/// Whether a part never has the byte in plain.
fn must_escape(byte: u8, part: UrlPart) -> bool {
    if byte.is_ascii_alphanumeric() {
        return false;
    }
    let is_host = matches!(part, UrlPart::Host | UrlPart::Zone);
    match byte {
        b'-' | b'_' | b'.' | b'~' => false,
        b'!' | b'(' | b')' | b'*' => !is_host && part != UrlPart::Fragment,
        b'\'' | b'[' | b']' | b'<' | b'>' | b'"' => !is_host,
        b'$' | b'&' | b'+' | b',' | b';' | b'=' => part == UrlPart::QueryComponent,
        b':' => matches!(part, UrlPart::UserPassword | UrlPart::QueryComponent),
        b'/' | b'@' => !matches!(part, UrlPart::Path | UrlPart::Fragment),
        b'?' => part != UrlPart::Fragment,
        _ => true,
    }
}

/// The text with decoded escape sequences; an error with Go's text for a sequence that the part
/// does not allow.
pub(super) fn unescape(text: &[u8], part: UrlPart) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = match byte {
            b'%' => {
                out.push(escaped_byte(rest, part)?);
                after.get(2..).unwrap_or_default()
            }
            b'+' if part == UrlPart::QueryComponent => {
                out.push(b' ');
                after
            }
            _ => {
                let is_host = matches!(part, UrlPart::Host | UrlPart::Zone);
                if is_host && byte.is_ascii() && must_escape(*byte, part) {
                    return Err(format!(
                        "invalid character {} in host name",
                        quote_bytes(&[*byte])
                    ));
                }
                out.push(*byte);
                after
            }
        };
    }
    Ok(out)
}

/// The byte of the escape sequence that the text starts with.
fn escaped_byte(text: &[u8], part: UrlPart) -> Result<u8, String> {
    let sequence = text.get(..text.len().min(3)).unwrap_or_default();
    let error = || format!("invalid URL escape {}", quote_bytes(sequence));
    let digit = |index: usize| {
        let digit = char::from(*sequence.get(index)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(error()) };
    let byte = (high << 4) | low;
    let is_allowed = match part {
        // A host escapes only characters outside of ASCII, and the percent sign before a zone.
        UrlPart::Host => high >= 8 || byte == b'%',
        UrlPart::Zone => byte == b'%' || byte == b' ' || !must_escape(byte, UrlPart::Host),
        _ => true,
    };
    if is_allowed { Ok(byte) } else { Err(error()) }
}

/// The bytes with escape sequences wherever the part needs them.
pub(super) fn escape(bytes: &[u8], part: UrlPart) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if must_escape(byte, part) {
            out.push_str(&format!("%{byte:02X}"));
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

/// The escaped form of a path or fragment: that of the source if valid.
pub(super) fn escaped_form(raw: &str, part: UrlPart) -> Result<String, String> {
    let decoded = unescape(raw.as_bytes(), part)?;
    let is_valid = raw.bytes().all(|byte| match byte {
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':'
        | b'@' | b'[' | b']' | b'%' => true,
        _ => !must_escape(byte, part),
    });
    Ok(if is_valid { raw.to_owned() } else { escape(&decoded, part) })
}

/// The bytes as a text. As in Go, each byte that is not UTF-8 is a replacement character.
pub(super) fn lossy(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out
}
