//! Regular expressions in the syntax of Go's `regexp`, with Go's messages, run by the `regex`
//! crate.
//!
//! The syntax is read without the feature `eval`, for the derives; [`Regex`] needs it.

use std::fmt;

mod class;
#[cfg(feature = "eval")]
mod compile;
mod escape;
mod names;
mod parser;

#[cfg(feature = "eval")]
pub use compile::Regex;

/// Largest pattern in bytes; the memory of the parser grows with the pattern by a factor of
/// hundreds.
const MAX_PATTERN: usize = 64 << 10;

/// A pattern that Go compiles, before the compilation here.
#[derive(Debug)]
#[cfg_attr(not(feature = "eval"), allow(dead_code, reason = "the compilation reads the fields"))]
pub struct Pattern<'p> {
    pattern: &'p str,
    translated: String,
    weight: parser::Weight,
}

/// An error of Go's `regexp/syntax`; displayed as ``error parsing regexp: missing closing ): `(`
/// ``.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    code: Code,
    expression: String,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    InvalidCharRange,
    InvalidEscape,
    InvalidNamedCapture,
    InvalidPerlOp,
    InvalidRepeatOp,
    InvalidRepeatSize,
    MissingBracket,
    MissingParen,
    MissingRepeatArgument,
    TrailingBackslash,
    UnexpectedParen,
    NestingDepth,
    Large,
}

impl Code {
    fn text(self) -> &'static str {
        match self {
            Code::InvalidCharRange => "invalid character class range",
            Code::InvalidEscape => "invalid escape sequence",
            Code::InvalidNamedCapture => "invalid named capture",
            Code::InvalidPerlOp => "invalid or unsupported Perl syntax",
            Code::InvalidRepeatOp => "invalid nested repetition operator",
            Code::InvalidRepeatSize => "invalid repeat count",
            Code::MissingBracket => "missing closing ]",
            Code::MissingParen => "missing closing )",
            Code::MissingRepeatArgument => "missing argument to repetition operator",
            Code::TrailingBackslash => "trailing backslash at end of expression",
            Code::UnexpectedParen => "unexpected )",
            Code::NestingDepth => "expression nests too deeply",
            Code::Large => "expression too large",
        }
    }
}

impl SyntaxError {
    fn new(code: Code, expression: &str) -> SyntaxError {
        SyntaxError { code, expression: expression.to_owned() }
    }
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.code.text(), self.expression)
    }
}

impl std::error::Error for SyntaxError {}

impl<'p> Pattern<'p> {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// Go's message for a pattern that it does not compile; `expression too large` beyond 64 KiB.
    pub fn parse(pattern: &'p str) -> Result<Pattern<'p>, SyntaxError> {
        if pattern.len() > MAX_PATTERN {
            return Err(SyntaxError::new(Code::Large, pattern));
        }
        let (translated, weight) = parser::translate(pattern)?;
        Ok(Pattern { pattern, translated, weight })
    }

    /// Number of ranges of characters of the pattern, about, each as often as its item is repeated:
    /// the time of a compilation grows with it.
    pub fn ranges(&self) -> u64 {
        self.weight.ranges
    }
}

#[cfg(all(test, feature = "eval"))]
mod tests;
