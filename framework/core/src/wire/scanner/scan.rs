//! A JSON scanner that finds where values end, in pieces that may be cut anywhere.
//!
//! The scan checks no more syntax than necessary to find boundaries. The bytes between them are
//! checked by their decoder, so that a bad object does not hide its neighbours. Not included:
//! iteration over the members of an object (`members`).

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2};

use super::simd::{BLOCK, Marks, Spread, backslashes, escaped};

/// Bytes that are not the expected JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The fault; borrowed for constant texts.
    message: Cow<'static, str>,
}

impl Malformed {
    #[doc(hidden)]
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Malformed {}

/// The position of a scan in the scanned value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    /// Before the value's first byte.
    Start,
    /// In a bare word.
    Bare,
    /// In an object or an array, outside of texts.
    Nested,
    /// In a text, alone or inside an object or an array.
    Text,
    /// In a text, behind a backslash: the next byte is escaped.
    Escape,
}

/// A scan for the end of a single value; feed the pieces in order.
#[derive(Clone, Debug)]
pub(crate) struct ValueScan {
    /// Position at the end of the piece before.
    mode: ScanState,
    /// Number of open brackets; 0 when the value is no object or array.
    depth: u32,
}

impl Default for ValueScan {
    fn default() -> Self {
        Self { mode: ScanState::Start, depth: 0 }
    }
}

impl ValueScan {
    /// Returns the number of bytes of `piece` up to the value's end; `None` when the value goes on.
    /// A bare word (number, `true`, …) ends before the delimiter, which is not consumed; 0 means
    /// that there is no value.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        if self.mode == ScanState::Start {
            self.mode = match piece.first()? {
                b'"' => ScanState::Text,
                b'{' | b'[' => {
                    self.depth = 1;
                    ScanState::Nested
                }
                byte if ends_a_word(*byte) => return Some(0),
                _ => ScanState::Bare,
            };
            at = 1;
        }
        let rest = &piece[at..];
        let length = match self.mode {
            ScanState::Bare => rest.iter().position(|byte| ends_a_word(*byte)),
            _ if self.depth > 0 => self.nested(rest),
            _ => self.text(rest),
        };
        length.map(|length| at + length)
    }

    /// Scans to the end of a text that is the whole value.
    fn text(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < piece.len() {
            if self.mode == ScanState::Escape {
                self.mode = ScanState::Text;
                at += 1;
                continue;
            }
            at = text_mark(piece, at)? + 1;
            if piece[at - 1] == b'"' {
                return Some(at);
            }
            self.mode = ScanState::Escape;
        }
        None
    }

    /// Scans to the end of an object or array, a block at a time.
    fn nested(&mut self, piece: &[u8]) -> Option<usize> {
        let mut before = 0;
        // Most values end in their first block, and a scan of that block costs less than a call of
        // `memchr`.
        if self.mode == ScanState::Nested
            && let Some(block) = piece.first_chunk::<BLOCK>()
            && backslashes(block).0 == 0
        {
            if let Some(length) = self.block(block) {
                return Some(length);
            }
            before = BLOCK;
        }
        self.chunks(&piece[before..]).map(|length| before + length)
    }

    /// Scans chunks of blocks, each of which is searched for backslashes first.
    fn chunks(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, chunk) in piece.chunks(CHUNK).enumerate() {
            // Most objects have no backslash, and a search of many blocks for a backslash is
            // cheaper.
            let has_escapes = memchr(b'\\', chunk).is_some() || self.mode == ScanState::Escape;
            if let Some(length) = self.chunk(chunk, has_escapes) {
                return Some(CHUNK * at + length);
            }
        }
        None
    }

    /// Scans a chunk, block by block; returns the length up to the closing bracket, if the bracket
    /// is there.
    fn chunk(&mut self, chunk: &[u8], has_escapes: bool) -> Option<usize> {
        let (blocks, tail) = chunk.as_chunks::<BLOCK>();
        for (at, block) in blocks.iter().enumerate() {
            let length = match has_escapes {
                false => self.block(block),
                true => self.block_with_escapes(block, BLOCK),
            };
            if let Some(length) = length {
                return Some(BLOCK * at + length);
            }
        }
        if tail.is_empty() {
            return None;
        }
        // Filled up with blanks, which are no marks.
        let mut block = [b' '; BLOCK];
        block[..tail.len()].copy_from_slice(tail);
        let length = match has_escapes {
            false => self.block(&block),
            true => self.block_with_escapes(&block, tail.len()),
        };
        length.map(|length| BLOCK * blocks.len() + length)
    }

    /// Scans a block without backslashes, whose first byte is not escaped.
    #[inline]
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let marks = Marks::of(block);
        let (texts, is_text) = marks.quotes.between(self.mode == ScanState::Text);
        self.mode = if is_text { ScanState::Text } else { ScanState::Nested };
        self.brackets(&marks, texts)
    }

    /// Scans the first `length` bytes of a block; the bytes behind them are blanks.
    fn block_with_escapes(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        // Quotes that are escaped end no text.
        let (marks, backslashes) = (Marks::of(block), backslashes(block));
        let (escaped, mut escapes_next) =
            escaped(backslashes.in_order(), self.mode == ScanState::Escape);
        // The escape state behind `length`, not behind the blanks.
        if length < BLOCK {
            escapes_next = escaped >> length & 1 == 1;
        }
        let quotes = Spread::from_order(marks.quotes.in_order() & !escaped);
        let (texts, is_text) = quotes.between(self.mode != ScanState::Nested);
        if backslashes.0 & !texts.0 != 0 {
            // No JSON. A backslash outside of texts escapes nothing.
            return self.bytewise(&block[..length]);
        }
        self.mode = match (escapes_next, is_text) {
            (true, _) => ScanState::Escape,
            (false, true) => ScanState::Text,
            (false, false) => ScanState::Nested,
        };
        self.brackets(&marks, texts)
    }

    /// Counts the brackets outside of `texts`; returns the length up to the value's end if the end
    /// is here.
    #[inline]
    fn brackets(&mut self, marks: &Marks, texts: Spread) -> Option<usize> {
        let opens = Spread(marks.opens.0 & !texts.0);
        let closes = Spread(marks.closes.0 & !texts.0);
        // The value cannot end here, whatever the order of the brackets.
        if opens.balance(closes, &mut self.depth) {
            return None;
        }
        self.brackets_one_by_one(opens.in_order(), closes.in_order())
    }

    /// Walks the brackets of a block in their order; returns the position at which the depth is
    /// zero again.
    fn brackets_one_by_one(&mut self, opens: u64, closes: u64) -> Option<usize> {
        let mut brackets = opens | closes;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            if opens >> at & 1 == 1 {
                self.depth = self.depth.saturating_add(1);
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return Some(at as usize + 1);
                }
            }
            brackets &= brackets - 1;
        }
        None
    }

    /// Scans to the end of an object or array, a byte at a time.
    fn bytewise(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            self.mode = match (self.mode, byte) {
                (ScanState::Escape, _) => ScanState::Text,
                (ScanState::Text, b'"') => ScanState::Nested,
                (ScanState::Text, b'\\') => ScanState::Escape,
                (ScanState::Nested, b'"') => ScanState::Text,
                (mode, _) => mode,
            };
            match byte {
                b'{' | b'[' if self.mode == ScanState::Nested => {
                    self.depth = self.depth.saturating_add(1);
                }
                b'}' | b']' if self.mode == ScanState::Nested => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}

/// Bytes that are searched for backslashes at once.
const CHUNK: usize = 8 * BLOCK;

/// Bytes of a text that are scanned before `memchr` is called: most texts end before, and a call
/// costs more than the scan.
const NEAR: usize = 32;

/// Returns the position of the next quote or backslash.
#[inline]
fn text_mark(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while at < from + NEAR
        && let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>())
    {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that is set is right; the bits above may not be.
        let marks = bytes_equal(word, b'"') | bytes_equal(word, b'\\');
        if marks != 0 {
            return Some(at + marks.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|length| at + length)
}

/// Returns the highest bit of the first byte of `word` that equals `byte`; lower bits are zero.
fn bytes_equal(word: u64, byte: u8) -> u64 {
    /// The number 1 in each byte.
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let zeros = word ^ (ONES * u64::from(byte));
    zeros.wrapping_sub(ONES) & !zeros & (ONES << 7)
}

/// Whether a bare word ends before this byte.
fn ends_a_word(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b',' | b']' | b'}' | b':')
}

/// Whether a byte is a blank of JSON (RFC 8259), which is less than the ASCII blanks.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Returns the position of the first byte from `at` on that is no blank.
#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_space) {
        at += 1;
    }
    at
}

/// Returns the end of the value that starts at `at`.
#[inline]
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    match bytes.get(at) {
        Some(b'"') => text_end(bytes, at).map(|text| text.end),
        Some(b'{' | b'[') => nested_end(bytes, at + 1, 1),
        _ => word_end(bytes, at),
    }
}

/// Returns the end of the object or array that was opened `depth` levels above `at`, a position
/// outside of texts.
pub(in crate::wire) fn nested_end(bytes: &[u8], at: usize, depth: u32) -> Result<usize, Malformed> {
    let mut scan = ValueScan { mode: ScanState::Nested, depth };
    match bytes.get(at..).and_then(|rest| scan.nested(rest)) {
        Some(length) => Ok(at + length),
        None => Err(endless()),
    }
}

/// Returns the end of a number, or of a word such as `true`.
fn word_end(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.iter().position(|byte| ends_a_word(*byte)) {
        Some(0) => Err(Malformed::new("a value is missing")),
        Some(length) => Ok(at + length),
        None if rest.is_empty() => Err(endless()),
        None => Ok(bytes.len()),
    }
}

/// The end of a text.
#[derive(Clone, Copy, Debug)]
pub(in crate::wire) struct TextEnd {
    /// Position behind the second quote.
    pub(in crate::wire) end: usize,
    /// Whether the text is written without escapes.
    pub(in crate::wire) is_plain: bool,
}

/// Returns the end of the text whose first quote is at `at`.
#[inline]
pub(in crate::wire) fn text_end(bytes: &[u8], at: usize) -> Result<TextEnd, Malformed> {
    match text_mark(bytes, at + 1) {
        Some(mark) if bytes[mark] == b'"' => Ok(TextEnd { end: mark + 1, is_plain: true }),
        Some(mark) => escaped_text_end(bytes, mark).ok_or_else(endless),
        None => Err(endless()),
    }
}

/// Returns the end of a text with a backslash at `at`.
#[cold]
fn escaped_text_end(bytes: &[u8], at: usize) -> Option<TextEnd> {
    let mut at = at;
    while bytes.get(at) == Some(&b'\\') {
        // Skips the backslash and the escaped character.
        at = text_mark(bytes, at + 2)?;
    }
    Some(TextEnd { end: at + 1, is_plain: false })
}

/// The error of a value whose end is missing. Cold: kept out of the loop of the scanner.
#[cold]
fn endless() -> Malformed {
    Malformed::new("a value does not end")
}

#[cfg(test)]
mod tests;
