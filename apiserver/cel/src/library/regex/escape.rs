//! Items that start with a backslash.

use super::parser::Parser;
use super::{Code, SyntaxError};

impl<'p> Parser<'p> {
    /// Reads an item outside of brackets that starts with a backslash.
    pub(super) fn backslash(&mut self) -> Result<(), SyntaxError> {
        let assertion = match self.rest.as_bytes().get(1) {
            Some(b'A') => r"\A",
            Some(b'z') => r"\z",
            // Words are those of ASCII in Go.
            Some(b'b') => r"(?-u:\b)",
            Some(b'B') => r"(?-u:\B)",
            Some(b'C') => return Err(SyntaxError::new(Code::InvalidEscape, r"\C")),
            Some(b'Q') => {
                self.quoted();
                return Ok(());
            }
            _ => return self.escape_or_class(),
        };
        self.skip(2);
        self.begin_item();
        self.out.push_str(assertion);
        Ok(())
    }

    /// Reads `\Q` and literal text up to `\E` or the end.
    fn quoted(&mut self) {
        self.skip(2);
        let (text, after) = self.rest.split_once(r"\E").unwrap_or((self.rest, ""));
        for c in text.chars() {
            self.literal(u32::from(c));
        }
        self.rest = after;
    }

    fn escape_or_class(&mut self) -> Result<(), SyntaxError> {
        let mut class = String::new();
        let is_unicode = self.unicode_class(&mut class)?;
        if is_unicode || self.perl_class(&mut class) {
            self.begin_item();
            self.weigh(if is_unicode { super::parser::UNICODE_RANGES } else { 1 });
            let (open, close) = if self.flags.fold { ("(?i:", ")") } else { ("", "") };
            self.out.extend([open, &class, close]);
        } else {
            let code = self.escape()?;
            self.literal(code);
        }
        Ok(())
    }

    /// Reads an escape sequence of a code point.
    pub(super) fn escape(&mut self) -> Result<u32, SyntaxError> {
        let before = self.rest;
        self.skip(1);
        let Some(c) = self.next() else {
            return Err(SyntaxError::new(Code::TrailingBackslash, ""));
        };
        let next_is_octal = self.rest.starts_with(|next: char| next.is_digit(8));
        let code = match c {
            // A single digit other than zero would be a reference to a group.
            '0' => Some(self.octal(c)),
            '1'..='7' if next_is_octal => Some(self.octal(c)),
            'x' => self.hexadecimal(),
            'a' => Some(0x07),
            'f' => Some(0x0c),
            'n' => Some(0x0a),
            'r' => Some(0x0d),
            't' => Some(0x09),
            'v' => Some(0x0b),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(u32::from(c)),
            _ => None,
        };
        code.ok_or_else(|| SyntaxError::new(Code::InvalidEscape, self.consumed(before)))
    }

    /// Up to three octal digits, of which the first is read.
    fn octal(&mut self, first: char) -> u32 {
        let mut code = first.to_digit(8).unwrap_or_default();
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|c| c.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.skip(1);
        }
        code
    }

    /// Two hexadecimal digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.next()?;
        if first != '{' {
            // Both characters are part of the message, whatever they are.
            let second = self.next();
            return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
        }
        let mut code = None;
        loop {
            let c = self.next()?;
            if c == '}' {
                return code;
            }
            let value = code.unwrap_or(0) * 16 + c.to_digit(16)?;
            if value > u32::from(char::MAX) {
                return None;
            }
            code = Some(value);
        }
    }
}
