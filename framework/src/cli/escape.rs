//! Escapes foreign text, which could otherwise control a terminal or forge a line of a log.
//!
//! A message may quote a field of an object, or the answer of a server: escape sequences in the
//! message would move the cursor and set the window's title, a line feed would begin a line that
//! looks like a line of the operator, and an override of the writing direction would show a name
//! backwards.

use std::fmt;

/// Writes text through, with each dangerous character in Rust's notation: `\n`, `\u{1b}`.
pub(super) struct Escaped<W>(pub(super) W);

impl<W: fmt::Write> fmt::Write for Escaped<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some((at, found)) = rest.char_indices().find(|(_, c)| is_dangerous(*c)) {
            self.0.write_str(&rest[..at])?;
            write!(self.0, "{}", found.escape_default())?;
            rest = &rest[at + found.len_utf8()..];
        }
        self.0.write_str(rest)
    }
}

/// Whether a character is dangerous: control characters (C0, DEL, C1), marks and overrides of the
/// writing direction, and Unicode's own separators of lines.
fn is_dangerous(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
    );
    c.is_control() || is_format
}

/// `value` as a single escaped line.
pub(super) fn escaped(value: impl fmt::Display) -> String {
    use fmt::Write;

    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(Escaped(&mut text), "{value}");
    text
}

/// `value` in separate lines, each escaped and indented, so that no line looks like a new message.
pub(super) fn indented(value: impl fmt::Display) -> String {
    let text = value.to_string();
    text.lines().map(escaped).collect::<Vec<_>>().join("\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_ends_a_line_is_written_out() {
        for (text, shown) in [
            ("plain, größer, 日本, 👩‍🚀", "plain, größer, 日本, 👩‍🚀"),
            ("a\nb\r\tc", r"a\nb\r\tc"),
            ("\x1b]0;title\x07", r"\u{1b}]0;title\u{7}"),
            ("\x00\x7f\u{9b}31m", r"\u{0}\u{7f}\u{9b}31m"),
            ("\u{202e}gnp.exe\u{2066}", r"\u{202e}gnp.exe\u{2066}"),
            ("one\u{2028}two\u{2029}\u{200f}", r"one\u{2028}two\u{2029}\u{200f}"),
            ("", ""),
        ] {
            assert_eq!(escaped(text), shown);
        }
    }

    #[test]
    fn lines_of_an_error_stay_lines_and_begin_no_other_message() {
        assert_eq!(
            indented("bad:\nerror: all is well\x1b[2J"),
            "bad:\n    error: all is well\\u{1b}[2J"
        );
    }
}
