//! A JSON scanner that finds where values end, over pieces that may be cut anywhere.
//!
//! It checks no more syntax than it needs to find boundaries: what is between them is judged by
//! whoever decodes it, so that one bad object does not hide its neighbours.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2};

use super::marks::{BLOCK, Marks, Spread, backslashes, escaped};

/// Bytes that are not the JSON that was expected there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    message: Cow<'static, str>,
}

impl Malformed {
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Malformed {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Start,
    Bare,
    Nested,
    Text,
    Escape,
}

/// Finds the end of one value; feed it the pieces in order.
#[derive(Clone, Debug)]
pub(crate) struct ValueScan {
    mode: Mode,
    depth: u32,
}

impl Default for ValueScan {
    fn default() -> Self {
        Self { mode: Mode::Start, depth: 0 }
    }
}

impl ValueScan {
    /// The number of bytes of `piece` up to the value's end; `None` when it goes on. A bare word
    /// (number, `true`, …) ends before the delimiter, which is not consumed; 0 is no value at all.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        if self.mode == Mode::Start {
            self.mode = match piece.first()? {
                b'"' => Mode::Text,
                b'{' | b'[' => {
                    self.depth = 1;
                    Mode::Nested
                }
                byte if ends_a_word(*byte) => return Some(0),
                _ => Mode::Bare,
            };
            at = 1;
        }
        let rest = &piece[at..];
        let length = match self.mode {
            Mode::Bare => rest.iter().position(|byte| ends_a_word(*byte)),
            _ if self.depth > 0 => self.nested(rest),
            _ => self.text(rest),
        };
        length.map(|length| at + length)
    }

    /// Runs to the end of a text that is the whole value.
    fn text(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < piece.len() {
            if self.mode == Mode::Escape {
                self.mode = Mode::Text;
                at += 1;
                continue;
            }
            at += text_mark(&piece[at..])? + 1;
            if piece[at - 1] == b'"' {
                return Some(at);
            }
            self.mode = Mode::Escape;
        }
        None
    }

    /// Runs to the end of an object or array, a block at a time.
    fn nested(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, stretch) in piece.chunks(STRETCH).enumerate() {
            // Most objects have no backslash, and it is cheaper to look for one in many blocks.
            let has_escapes = memchr(b'\\', stretch).is_some() || self.mode == Mode::Escape;
            if let Some(length) = self.stretch(stretch, has_escapes) {
                return Some(STRETCH * at + length);
            }
        }
        None
    }

    fn stretch(&mut self, stretch: &[u8], has_escapes: bool) -> Option<usize> {
        let (blocks, tail) = stretch.as_chunks::<BLOCK>();
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
        let mut block = [b' '; BLOCK];
        block[..tail.len()].copy_from_slice(tail);
        let length = match has_escapes {
            false => self.block(&block),
            true => self.block_with_escapes(&block, tail.len()),
        };
        length.map(|length| BLOCK * blocks.len() + length)
    }

    /// A block without backslashes, whose first byte is not behind one.
    #[inline]
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let marks = Marks::of(block);
        let (texts, is_text) = marks.quotes.between(self.mode == Mode::Text);
        self.mode = if is_text { Mode::Text } else { Mode::Nested };
        self.brackets(&marks, texts)
    }

    /// The first `length` bytes of a block; behind them there are blanks.
    fn block_with_escapes(&mut self, block: &[u8; BLOCK], length: usize) -> Option<usize> {
        let (marks, backslashes) = (Marks::of(block), backslashes(block));
        let (escaped, mut escapes_next) =
            escaped(backslashes.in_order(), self.mode == Mode::Escape);
        if length < BLOCK {
            escapes_next = escaped >> length & 1 == 1;
        }
        let quotes = Spread::from_order(marks.quotes.in_order() & !escaped);
        let (texts, is_text) = quotes.between(self.mode != Mode::Nested);
        if backslashes.0 & !texts.0 != 0 {
            // No JSON. A backslash outside of texts escapes nothing.
            return self.bytewise(&block[..length]);
        }
        self.mode = match (escapes_next, is_text) {
            (true, _) => Mode::Escape,
            (false, true) => Mode::Text,
            (false, false) => Mode::Nested,
        };
        self.brackets(&marks, texts)
    }

    /// Counts the brackets outside of `texts`; returns the length up to the value's end if it is
    /// here.
    #[inline]
    fn brackets(&mut self, marks: &Marks, texts: Spread) -> Option<usize> {
        let opens = Spread(marks.opens.0 & !texts.0);
        let closes = Spread(marks.closes.0 & !texts.0);
        if opens.balance(closes, &mut self.depth) {
            return None;
        }
        self.brackets_one_by_one(opens.in_order(), closes.in_order())
    }

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

    /// Runs to the end of an object or array, a byte at a time.
    fn bytewise(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            self.mode = match (self.mode, byte) {
                (Mode::Escape, _) => Mode::Text,
                (Mode::Text, b'"') => Mode::Nested,
                (Mode::Text, b'\\') => Mode::Escape,
                (Mode::Nested, b'"') => Mode::Text,
                (mode, _) => mode,
            };
            match byte {
                b'{' | b'[' if self.mode == Mode::Nested => {
                    self.depth = self.depth.saturating_add(1);
                }
                b'}' | b']' if self.mode == Mode::Nested => {
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

/// So many bytes are searched for backslashes at once.
const STRETCH: usize = 8 * BLOCK;

/// So many bytes of a text are looked at before `memchr` is called: most end before, and a call costs
/// more than that.
const NEAR: usize = 32;

/// Where the next quote or backslash stands.
fn text_mark(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes[..bytes.len().min(NEAR)].as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest bit that is set is right; those above it may not be.
        let marks = bytes_equal(word, b'"') | bytes_equal(word, b'\\');
        if marks != 0 {
            return Some(8 * at + marks.trailing_zeros() as usize / 8);
        }
    }
    let near = 8 * words.len();
    memchr2(b'"', b'\\', &bytes[near..]).map(|at| near + at)
}

/// The highest bit of the first byte of `word` that is `byte`, and of none before it.
fn bytes_equal(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let zeros = word ^ (ONES * u64::from(byte));
    zeros.wrapping_sub(ONES) & !zeros & (ONES << 7)
}

fn ends_a_word(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b',' | b']' | b'}' | b':')
}

#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_space) {
        at += 1;
    }
    at
}

/// The end of the value that starts at `at`.
#[inline]
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    if bytes.get(at) == Some(&b'"') {
        return text_end(bytes, at);
    }
    let mut scan = ValueScan::default();
    match scan.feed(&bytes[at..]) {
        Some(0) => Err(Malformed::new("a value is missing")),
        Some(length) => Ok(at + length),
        None if scan.mode == Mode::Bare => Ok(bytes.len()),
        None => Err(Malformed::new("a value does not end")),
    }
}

/// The end of the text whose first quote stands at `at`.
#[inline]
fn text_end(bytes: &[u8], at: usize) -> Result<usize, Malformed> {
    let mut at = at + 1;
    while let Some(mark) = bytes.get(at..).and_then(text_mark) {
        at += mark;
        if bytes[at] == b'"' {
            return Ok(at + 1);
        }
        at += 2;
    }
    Err(Malformed::new("a value does not end"))
}

/// One member of an object, by position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// The name as it stands there, without quotes; names with escapes are never ours.
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Where the name's quote stands.
    pub(crate) start: usize,
    /// Where the value ends.
    pub(crate) end: usize,
}

/// A place between the members of an object.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Behind the opening brace or behind the last value; at the closing brace in the end.
    at: usize,
    first: bool,
}

/// A member whose value was not looked at yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) name: &'a [u8],
    /// Where the name's quote stands.
    pub(crate) start: usize,
    /// Where the value begins.
    pub(crate) value: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let at = skip_space(bytes, 0);
        if bytes.get(at) != Some(&b'{') {
            return Err(Malformed::new("an object was expected"));
        }
        Ok(Self { bytes, at: at + 1, first: true })
    }

    /// The next member's name; `None` at the closing brace. Call `skip` or `skip_to` after it.
    pub(crate) fn name(&mut self) -> Result<Option<Name<'a>>, Malformed> {
        let mut at = skip_space(self.bytes, self.at);
        match self.bytes.get(at) {
            Some(b'}') => {
                self.at = at;
                return Ok(None);
            }
            Some(b',') if !self.first => at = skip_space(self.bytes, at + 1),
            _ if self.first => {}
            _ => return Err(Malformed::new("a comma or the object's end was expected")),
        }
        self.first = false;
        let start = at;
        if self.bytes.get(at) != Some(&b'"') {
            return Err(Malformed::new("a member name was expected"));
        }
        at = text_end(self.bytes, at)?;
        let name = &self.bytes[start + 1..at - 1];
        at = skip_space(self.bytes, at);
        if self.bytes.get(at) != Some(&b':') {
            return Err(Malformed::new("a colon was expected"));
        }
        self.at = skip_space(self.bytes, at + 1);
        Ok(Some(Name { name, start, value: self.at }))
    }

    /// Passes over the value that begins here; returns where it ends.
    pub(crate) fn skip(&mut self) -> Result<usize, Malformed> {
        self.at = value_end(self.bytes, self.at)?;
        Ok(self.at)
    }

    /// The value that begins here is known to end at `end`.
    pub(crate) fn skip_to(&mut self, end: usize) {
        self.at = end;
    }

    /// Where the closing brace stands, after `name` found it.
    pub(crate) fn close(&self) -> usize {
        self.at
    }
}

/// Goes through an object's members; `each` says whether to go on. Returns where the closing brace
/// stands, or `None` when `each` stopped. On truncated input the members before the cut have been
/// seen.
pub(crate) fn members<'a>(
    bytes: &'a [u8],
    each: &mut dyn FnMut(Member<'a>) -> bool,
) -> Result<Option<usize>, Malformed> {
    let mut cursor = Cursor::open(bytes)?;
    while let Some(Name { name, start, value }) = cursor.name()? {
        let end = cursor.skip()?;
        if !each(Member { name, value: &bytes[value..end], start, end }) {
            return Ok(None);
        }
    }
    Ok(Some(cursor.close()))
}

/// Goes through an array's elements; each comes with its position.
pub(crate) fn elements<'a>(
    bytes: &'a [u8],
    each: &mut dyn FnMut(usize, &'a [u8]),
) -> Result<(), Malformed> {
    let mut at = skip_space(bytes, 0);
    if bytes.get(at) != Some(&b'[') {
        return Err(Malformed::new("an array was expected"));
    }
    at = skip_space(bytes, at + 1);
    if bytes.get(at) == Some(&b']') {
        return Ok(());
    }
    loop {
        let end = value_end(bytes, at)?;
        each(at, &bytes[at..end]);
        at = skip_space(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = skip_space(bytes, at + 1),
            Some(b']') => return Ok(()),
            _ => return Err(Malformed::new("a comma or the array's end was expected")),
        }
    }
}

/// The elements of an array one by one, each with its position; ends where the array does or at the
/// first fault.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    bytes: &'a [u8],
    /// Where the next element begins.
    at: Option<usize>,
}

impl<'a> Elements<'a> {
    /// Of what is no array there are none.
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        let open = skip_space(bytes, 0);
        let first = skip_space(bytes, open + 1);
        let is_some = bytes.get(open) == Some(&b'[') && bytes.get(first) != Some(&b']');
        Self { bytes, at: is_some.then_some(first) }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at.take()?;
        let end = value_end(self.bytes, at).ok()?;
        let next = skip_space(self.bytes, end);
        if self.bytes.get(next) == Some(&b',') {
            self.at = Some(skip_space(self.bytes, next + 1));
        }
        Some((at, &self.bytes[at..end]))
    }
}

/// The text of a JSON string; `None` for anything else.
pub(crate) fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if inner.contains(&b'\\') {
        return serde_json::from_slice::<String>(value).ok().map(Cow::Owned);
    }
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// The value at `path`, for paths through objects only.
pub(crate) fn object_at_path<'a>(bytes: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else {
        return Some(bytes);
    };
    let mut found = None;
    // A malformed tail does not take back what was found before it.
    let _ = members(bytes, &mut |member| {
        if member.name == first.as_bytes() {
            found = Some(member.value);
        }
        found.is_none()
    });
    object_at_path(found?, rest)
}

/// Steps that a path has at most. Each costs a look at all that the value holds.
const MOST_STEPS: usize = 64;

/// The path of the value that `offset` falls into, such as `.spec.ports[0].port`.
pub(crate) fn path_at(bytes: &[u8], offset: usize) -> String {
    let mut path = String::new();
    let (mut from, mut value) = (0, bytes);
    for _ in 0..MOST_STEPS {
        let target = offset.saturating_sub(from);
        let mut next = None;
        if value.first() == Some(&b'[') {
            let mut index = 0;
            let _ = elements(value, &mut |at, element| {
                if (at..=at + element.len()).contains(&target) && next.is_none() {
                    next = Some((format!("[{index}]"), at, element));
                }
                index += 1;
            });
        } else if value.first() == Some(&b'{') {
            let _ = members(value, &mut |member| {
                if (member.start..=member.end).contains(&target) {
                    let name = String::from_utf8_lossy(member.name);
                    let at = member.end - member.value.len();
                    next = Some((format!(".{name}"), at, member.value));
                }
                next.is_none()
            });
        }
        let Some((step, at, inner)) = next else {
            return path;
        };
        path.push_str(&step);
        from += at;
        value = inner;
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_ends_at_its_own_brace_whatever_its_strings_hold() {
        let value = br#"{"a":"}\\\"]","b":[{"c":"\u007d"}]}"#;
        let mut tail = value.to_vec();
        tail.extend_from_slice(b",{}");
        for cut in 0..value.len() {
            let mut scan = ValueScan::default();
            assert_eq!(scan.feed(&tail[..cut]), None, "cut at {cut}");
            assert_eq!(scan.feed(&tail[cut..]), Some(value.len() - cut), "cut at {cut}");
        }
    }

    proptest! {
        #[test]
        fn blocks_end_a_value_where_single_bytes_do(
            bytes in prop::collection::vec(
                prop::sample::select(br#""\{}[],x: "#.to_vec()), 0..300),
            mut cuts in prop::collection::vec(0_usize..300, 0..4),
        ) {
            let mut value = vec![b'{'];
            value.extend(bytes);
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(value.len()));
            cuts.sort_unstable();
            let mut single = ValueScan { mode: Mode::Nested, depth: 1 };
            let expected = single.bytewise(&value[1..]).map(|length| length + 1);
            let mut scan = ValueScan::default();
            let (mut from, mut end) = (0, None);
            for cut in cuts.into_iter().chain([value.len()]) {
                end = end.or_else(|| scan.feed(&value[from..cut]).map(|length| from + length));
                from = cut;
            }
            prop_assert_eq!(end, expected);
        }
    }

    #[test]
    fn the_next_mark_of_a_text_is_found_wherever_it_stands() {
        for length in 0..80 {
            for filler in [b'x', b'!', b'#', b'[', b']', 0, 0x80, 0xa2, 0xdc, 0xff] {
                let mut text = vec![filler; length];
                assert_eq!(text_mark(&text), None);
                for at in 0..length {
                    for (mark, other) in [(b'"', b'\\'), (b'\\', b'"')] {
                        text[at] = mark;
                        assert_eq!(text_mark(&text), Some(at));
                        if at + 1 < length {
                            text[at + 1] = other;
                            assert_eq!(text_mark(&text), Some(at));
                            text[at + 1] = filler;
                        }
                    }
                    text[at] = filler;
                }
            }
        }
    }

    #[test]
    fn a_missing_value_is_no_value() {
        for bad in [&b"{\"a\":,}"[..], b"{\"a\":}", b"{\"a\":1,}", b"{,}", b"{\"a\"::1}"] {
            assert!(members(bad, &mut |_| true).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        for bad in [&b"[,]"[..], b"[1,]", b"[1,,2]", b"[:]"] {
            assert!(elements(bad, &mut |_, _| {}).is_err(), "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn a_path_into_values_nested_without_end_has_an_end() {
        let deep = "[".repeat(100_000);
        assert_eq!(path_at(deep.as_bytes(), 99_999), "");
        let deep = format!("{deep}{}", "]".repeat(100_000));
        assert_eq!(path_at(deep.as_bytes(), 99_999), "[0]".repeat(MOST_STEPS));
    }

    #[test]
    fn an_offset_is_told_as_a_path() {
        let object = br#"{"a":1,"spec":{"ports":[{"port":1},{"port":"x"}]}}"#;
        let offset = object.iter().position(|b| *b == b'x').unwrap();
        assert_eq!(path_at(object, offset), ".spec.ports[1].port");
    }
}
