//! Iteration over objects and arrays by the offsets of their contents.
//!
//! Values are skipped without checks. Lookups use the first of several members of the same name.
//! Not here: finding the end of a value (`scan`).

use std::borrow::Cow;

use super::scan::{Malformed, is_space, skip_space, text_end, value_end};

/// A member of an object, by position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member<'a> {
    /// The name as written, without quotes. Comparisons use names without escapes, so a name that
    /// is written with escapes equals none of them.
    pub(crate) name: &'a [u8],
    /// The value as written, without surrounding blanks.
    pub(crate) value: &'a [u8],
    /// Position of the name's quote.
    pub(crate) start: usize,
    /// End of the value.
    pub(crate) end: usize,
}

/// A position between the members of an object.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    /// The bytes that all positions refer to.
    bytes: &'a [u8],
    /// Behind the opening brace or the last value; at the closing brace in the end.
    at: usize,
    /// Whether no member was read yet, so that no comma is expected.
    first: bool,
}

/// A member whose value was not scanned yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnscannedMember<'a> {
    /// The name as written, without quotes.
    pub(crate) name: &'a [u8],
    /// Position of the name's quote.
    pub(crate) start: usize,
    /// Start of the value.
    pub(crate) value: usize,
    /// Whether the name is written without escapes.
    pub(crate) is_plain: bool,
}

impl<'a> Cursor<'a> {
    /// Opens the object that begins at the first byte that is no blank.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Malformed> {
        Self::open_at(bytes, 0)
    }

    /// Opens the object that begins at `at`; positions refer to all of `bytes`.
    pub(in crate::wire) fn open_at(bytes: &'a [u8], at: usize) -> Result<Self, Malformed> {
        let at = skip_space(bytes, at);
        if bytes.get(at) != Some(&b'{') {
            return Err(Malformed::new("an object was expected"));
        }
        Ok(Self { bytes, at: at + 1, first: true })
    }

    /// Returns the next member's name; `None` at the closing brace. Call `skip` or `skip_to` after
    /// this call.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<Option<UnscannedMember<'a>>, Malformed> {
        // The fast path: in Go's form, without blanks.
        let start = self.at + usize::from(!self.first);
        if (self.first || self.bytes.get(self.at) == Some(&b','))
            && self.bytes.get(start) == Some(&b'"')
            && let Ok(text) = text_end(self.bytes, start)
            && let Some([b':', next, ..]) = self.bytes.get(text.end..)
            && !is_space(*next)
        {
            self.first = false;
            self.at = text.end + 1;
            return Ok(Some(UnscannedMember {
                name: &self.bytes[start + 1..text.end - 1],
                start,
                value: self.at,
                is_plain: text.is_plain,
            }));
        }
        // Nothing was consumed: the general case starts at the same place, and reports faults.
        self.spaced_name()
    }

    /// The general case: blanks anywhere, the closing brace, and faults.
    ///
    /// Kept out of `name`, so that the fast path stays small enough to be inlined.
    fn spaced_name(&mut self) -> Result<Option<UnscannedMember<'a>>, Malformed> {
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
        let text = text_end(self.bytes, at)?;
        let name = &self.bytes[start + 1..text.end - 1];
        at = skip_space(self.bytes, text.end);
        if self.bytes.get(at) != Some(&b':') {
            return Err(Malformed::new("a colon was expected"));
        }
        self.at = skip_space(self.bytes, at + 1);
        Ok(Some(UnscannedMember { name, start, value: self.at, is_plain: text.is_plain }))
    }

    /// Skips the value that begins here; returns its end.
    pub(crate) fn skip(&mut self) -> Result<usize, Malformed> {
        self.at = value_end(self.bytes, self.at)?;
        Ok(self.at)
    }

    /// Skips the value that begins here and is known to end at `end`; returns `end`.
    ///
    /// The caller has to know the end from an earlier scan of the same bytes: the end is not
    /// checked.
    pub(crate) fn skip_to(&mut self, end: usize) -> usize {
        self.at = end;
        end
    }

    /// Returns the position of the closing brace, after `name` found it.
    pub(crate) fn close(&self) -> usize {
        self.at
    }
}

/// Calls `each` for an object's members until `each` returns false. Returns the position of the
/// closing brace, or `None` when `each` stopped. On truncated input the members before the cut have
/// been passed.
pub(crate) fn members<'a>(
    bytes: &'a [u8],
    each: &mut dyn FnMut(Member<'a>) -> bool,
) -> Result<Option<usize>, Malformed> {
    let mut cursor = Cursor::open(bytes)?;
    while let Some(UnscannedMember { name, start, value, .. }) = cursor.name()? {
        let end = cursor.skip()?;
        if !each(Member { name, value: &bytes[value..end], start, end }) {
            return Ok(None);
        }
    }
    Ok(Some(cursor.close()))
}

/// Calls `each` for an array's elements, with their positions.
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

/// The elements of an array, each with the position; ends with the array or at the first fault.
#[derive(Debug)]
pub(crate) struct Elements<'a> {
    /// The array.
    bytes: &'a [u8],
    /// Start of the next element.
    at: Option<usize>,
}

impl<'a> Elements<'a> {
    /// Iterates over an array; other values have no elements.
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        let open = skip_space(bytes, 0);
        let first = skip_space(bytes, open + 1);
        // An empty array has the closing bracket in place of the first element.
        let is_some = bytes.get(open) == Some(&b'[') && bytes.get(first) != Some(&b']');
        Self { bytes, at: is_some.then_some(first) }
    }
}

impl<'a> Iterator for Elements<'a> {
    /// Position of the element in the array's bytes, and the bytes of the element.
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // Taken, so that the iterator stays at the end after a fault.
        let at = self.at.take()?;
        let end = value_end(self.bytes, at).ok()?;
        let next = skip_space(self.bytes, end);
        if self.bytes.get(next) == Some(&b',') {
            self.at = Some(skip_space(self.bytes, next + 1));
        }
        Some((at, &self.bytes[at..end]))
    }
}

/// Returns the text of a JSON string; `None` for anything else.
pub(crate) fn text(value: &[u8]) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    seen_text(value, !inner.contains(&b'\\'))
}

/// Returns the text of a JSON string; `is_plain` is true if the scanner found no escapes in the
/// text.
pub(in crate::wire) fn seen_text(value: &[u8], is_plain: bool) -> Option<Cow<'_, str>> {
    if !is_plain {
        return serde_json::from_slice::<String>(value).ok().map(Cow::Owned);
    }
    let inner = value.get(1..value.len().checked_sub(1)?)?;
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

/// Returns the value at `path`, for paths through objects only. Names with escapes are not found;
/// `strip::value_at_path` finds them.
pub(crate) fn value_at_plain_path<'a>(bytes: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    let Some((first, rest)) = path.split_first() else {
        return Some(bytes);
    };
    let mut found = None;
    // Members before a fault count even if the rest is malformed.
    let _ = members(bytes, &mut |member| {
        if member.name == first.as_bytes() {
            found = Some(member.value);
        }
        found.is_none()
    });
    value_at_plain_path(found?, rest)
}

#[cfg(test)]
mod tests;
