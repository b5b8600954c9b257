//! Groups and flags.

use super::parser::{Flags, Parser};
use super::{Code, SyntaxError};

impl<'p> Parser<'p> {
    /// Reads the start of a group, or flags without one.
    pub(super) fn open_group(&mut self) -> Result<(), SyntaxError> {
        if !self.rest.starts_with("(?") {
            self.skip(1);
            self.push_group(self.flags);
            return Ok(());
        }
        // Go looks at lengths too: `(?P<` at the end is not the start of a name.
        let start = match self.rest {
            rest if rest.starts_with("(?P<") && rest.len() > 4 => 4,
            rest if rest.starts_with("(?<") && rest.len() > 3 => 3,
            _ => return self.group_flags(),
        };
        self.named_group(start)
    }

    fn named_group(&mut self, start: usize) -> Result<(), SyntaxError> {
        let Some((head, after)) = self.rest.split_once('>') else {
            return Err(SyntaxError::new(Code::InvalidNamedCapture, self.rest));
        };
        let before = self.rest;
        self.rest = after;
        let name = head.get(start..).unwrap_or_default();
        if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            return Err(SyntaxError::new(Code::InvalidNamedCapture, self.consumed(before)));
        }
        self.push_group(self.flags);
        Ok(())
    }

    /// Reads `(?flags)` or `(?flags:`.
    fn group_flags(&mut self) -> Result<(), SyntaxError> {
        let before = self.rest;
        self.skip(2);
        let mut flags = self.flags;
        let (mut value, mut saw_flag) = (true, false);
        while let Some(c) = self.next() {
            match c {
                'i' | 'm' | 's' | 'U' => {
                    set(&mut flags, c, value);
                    saw_flag = true;
                }
                '-' if value => {
                    value = false;
                    saw_flag = false;
                }
                ':' | ')' if value || saw_flag => {
                    if c == ':' {
                        self.push_group(self.flags);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(SyntaxError::new(Code::InvalidPerlOp, self.consumed(before)))
    }
}

fn set(flags: &mut Flags, letter: char, value: bool) {
    match letter {
        'i' => flags.fold = value,
        'm' => flags.multi_line = value,
        's' => flags.dot_newline = value,
        _ => flags.swap_greed = value,
    }
}
