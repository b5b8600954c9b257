//! Base64 as Go's `encoding/base64` reads and writes such texts; `format: byte` of a schema is such
//! a text.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The two characters of base64 that are no letters or digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alphabet {
    /// `+` and `/`
    Standard,
    /// `-` and `_`. This is the alphabet by which kube-openapi's `strfmt.Base64` reads a value of
    /// `format: byte`, so that a rule fails on a value with `+` or `/`.
    Url,
}

/// The text of bytes in the standard alphabet, with padding.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0u32, |group, &byte| group << 8 | u32::from(byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            if place > chunk.len() {
                out.push('=');
            } else {
                let index = (group >> (18 - 6 * place)) as usize & 63;
                out.push(char::from(STANDARD.get(index).copied().unwrap_or(b'A')));
            }
        }
    }
    out
}

/// The bytes of a text with padding; line breaks are skipped wherever they are, and the bits that
/// the last character has beyond the last byte are ignored, both as in Go.
///
/// # Errors
///
/// Go's message `illegal base64 data at input byte N`.
pub fn decode(text: &str, alphabet: Alphabet) -> Result<Vec<u8>, String> {
    let input = text.as_bytes();
    let mut out = Vec::with_capacity(input.len() / 4 * 3);
    let mut at = 0;
    loop {
        let (group, next) = quantum(input, at, alphabet)
            .map_err(|place| format!("illegal base64 data at input byte {place}"))?;
        let Some(group) = group else { return Ok(out) };
        out.extend_from_slice(group.bytes.get(..group.len).unwrap_or_default());
        at = next;
        if group.len < 3 {
            return Ok(out);
        }
    }
}

/// Up to three decoded bytes.
struct DecodedGroup {
    bytes: [u8; 3],
    len: usize,
}

/// The group of four characters at a place, and the place behind, or `None` at the end of the
/// input. The error is the place that Go names.
fn quantum(
    input: &[u8],
    mut at: usize,
    alphabet: Alphabet,
) -> Result<(Option<DecodedGroup>, usize), usize> {
    let mut bits = 0u32;
    let mut count = 0usize;
    while count < 4 {
        let Some(&byte) = input.get(at) else {
            return if count == 0 { Ok((None, at)) } else { Err(at - count) };
        };
        at += 1;
        if let Some(value) = value_of(byte, alphabet) {
            bits = bits << 6 | u32::from(value);
            count += 1;
        } else if byte == b'=' {
            if count < 2 {
                return Err(at - 1);
            }
            at = end_of_padding(input, at, count)?;
            let [_, bytes @ ..] = (bits << (6 * (4 - count))).to_be_bytes();
            return Ok((Some(DecodedGroup { bytes, len: count - 1 }), at));
        } else if !is_line_break(byte) {
            return Err(at - 1);
        }
    }
    let [_, bytes @ ..] = bits.to_be_bytes();
    Ok((Some(DecodedGroup { bytes, len: 3 }), at))
}

/// The end of the input after the first `=`: a second `=` where two characters came before, then
/// only line breaks.
fn end_of_padding(input: &[u8], mut at: usize, count: usize) -> Result<usize, usize> {
    let skip = |mut at: usize| {
        while input.get(at).copied().is_some_and(is_line_break) {
            at += 1;
        }
        at
    };
    if count == 2 {
        at = skip(at);
        match input.get(at) {
            None => return Err(input.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
    }
    at = skip(at);
    if at < input.len() { Err(at) } else { Ok(at) }
}

fn is_line_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The six bits of a character of the alphabet.
fn value_of(byte: u8, alphabet: Alphabet) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' if alphabet == Alphabet::Standard => Some(62),
        b'/' if alphabet == Alphabet::Standard => Some(63),
        b'-' if alphabet == Alphabet::Url => Some(62),
        b'_' if alphabet == Alphabet::Url => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_are_read_back() {
        for length in 0..10u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(83)).collect();
            assert_eq!(decode(&encode(&bytes), Alphabet::Standard), Ok(bytes));
        }
    }

    #[test]
    fn an_error_names_the_byte_that_go_names() {
        for (text, at) in [
            ("A", 0),
            ("AA", 0),
            ("AA=", 3),
            ("AA=A", 2),
            ("AA==A", 4),
            ("=", 0),
            ("A=", 1),
            ("AAA*", 3),
        ] {
            let message = format!("illegal base64 data at input byte {at}");
            assert_eq!(decode(text, Alphabet::Standard), Err(message), "{text}");
        }
    }

    #[test]
    fn line_breaks_are_skipped() {
        assert_eq!(decode("A\nQ\r=\n=\n", Alphabet::Standard), Ok(vec![1]));
    }

    #[test]
    fn each_alphabet_refuses_the_other() {
        assert_eq!(decode("-_-_", Alphabet::Url), decode("+/+/", Alphabet::Standard));
        assert!(decode("+/+/", Alphabet::Url).is_err());
        assert!(decode("-_-_", Alphabet::Standard).is_err());
    }
}
