//! Classes of characters: in brackets, of Perl (`\d`), of POSIX (`[:alpha:]`) and of Unicode
//! (`\pL`).

use std::fmt::Write as _;

use super::names;
use super::parser::Parser;
use super::{Code, SyntaxError};

/// A class without any character.
pub(super) const NOTHING: &str = r"[^\x{0}-\x{10FFFF}]";

/// Most classes of Unicode in a pattern: each has hundreds of ranges.
const MAX_UNICODE_CLASSES: u32 = 500;

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Writes a code point so that it has no meaning of its own in a pattern or class.
pub(super) fn push_code(out: &mut String, code: u32) {
    match char::from_u32(code) {
        Some(c) if c.is_alphanumeric() => out.push(c),
        // Writing to a string cannot fail.
        _ => drop(write!(out, "\\x{{{code:X}}}")),
    }
}

/// Writes a range without the surrogates, which occur in no text.
fn push_range(out: &mut String, low: u32, high: u32) {
    let low = if char::from_u32(low).is_none() { 0xE000 } else { low };
    let high = if char::from_u32(high).is_none() { 0xD7FF } else { high };
    if low > high {
        return out.push_str(NOTHING);
    }
    push_code(out, low);
    if low < high {
        out.push('-');
        push_code(out, high);
    }
}

impl<'p> Parser<'p> {
    /// Reads a class in brackets.
    pub(super) fn class(&mut self) -> Result<(), SyntaxError> {
        let before = self.rest;
        self.skip(1);
        let mut class = String::from("[");
        if self.rest.starts_with('^') {
            self.skip(1);
            class.push('^');
        }
        let mut is_first = true;
        // A bracket in the first place is a member.
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            self.class_member(before, &mut class)?;
        }
        self.skip(1);
        class.push(']');
        let (open, close) = if self.flags.fold { ("(?i:", ")") } else { ("", "") };
        self.out.extend([open, &class, close]);
        Ok(())
    }

    /// Reads a member: a class or a range. `before` is the pattern from the bracket on.
    fn class_member(&mut self, before: &'p str, out: &mut String) -> Result<(), SyntaxError> {
        if self.posix_class(out)? || self.unicode_class(out)? || self.perl_class(out) {
            return Ok(());
        }
        let range = self.rest;
        let low = self.class_char(before)?;
        let mut high = low;
        if self.rest.len() >= 2 && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
            self.skip(1);
            high = self.class_char(before)?;
            if high < low {
                return Err(SyntaxError::new(Code::InvalidCharRange, self.consumed(range)));
            }
        }
        push_range(out, low, high);
        Ok(())
    }

    fn class_char(&mut self, before: &'p str) -> Result<u32, SyntaxError> {
        if self.rest.starts_with('\\') {
            return self.escape();
        }
        self.next().map(u32::from).ok_or_else(|| SyntaxError::new(Code::MissingBracket, before))
    }

    /// Reads `[:name:]` within brackets, if there is such a class.
    fn posix_class(&mut self, out: &mut String) -> Result<bool, SyntaxError> {
        let Some((name, after)) =
            self.rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]"))
        else {
            return Ok(false);
        };
        let before = self.rest;
        self.rest = after;
        let whole = self.consumed(before);
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(SyntaxError::new(Code::InvalidCharRange, whole));
        }
        out.push_str(whole);
        Ok(true)
    }

    /// Reads `\d`, `\s`, `\w` or a negation of these, if there is such a class. All are of ASCII.
    pub(super) fn perl_class(&mut self, out: &mut String) -> bool {
        let class = match self.rest.as_bytes() {
            [b'\\', b'd', ..] => "[0-9]",
            [b'\\', b'D', ..] => "[^0-9]",
            [b'\\', b's', ..] => r"[\t\n\x0C\r\x20]",
            [b'\\', b'S', ..] => r"[^\t\n\x0C\r\x20]",
            [b'\\', b'w', ..] => "[0-9A-Za-z_]",
            [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
            _ => return false,
        };
        self.skip(2);
        out.push_str(class);
        true
    }

    /// Reads `\pN`, `\p{Name}` or a negation of these, if there is such a class.
    pub(super) fn unicode_class(&mut self, out: &mut String) -> Result<bool, SyntaxError> {
        let mut negated = match self.rest.as_bytes() {
            [b'\\', b'p', ..] => false,
            [b'\\', b'P', ..] => true,
            _ => return Ok(false),
        };
        let before = self.rest;
        self.skip(2);
        let name = if self.rest.starts_with('{') {
            let Some((name, after)) = self.rest.split_once('}') else {
                return Err(SyntaxError::new(Code::InvalidCharRange, before));
            };
            self.rest = after;
            name.get(1..).unwrap_or_default()
        } else {
            let start = self.rest;
            self.next();
            self.consumed(start)
        };
        let name = match name.strip_prefix('^') {
            Some(name) => {
                negated = !negated;
                name
            }
            None => name,
        };
        let Some(class) = names::class(name, negated) else {
            return Err(SyntaxError::new(Code::InvalidCharRange, self.consumed(before)));
        };
        self.unicode_classes += 1;
        if self.unicode_classes > MAX_UNICODE_CLASSES {
            return Err(self.whole(Code::Large));
        }
        out.push_str(&class);
        Ok(true)
    }
}
