//! Regular expressions in the syntax of Go's `regexp`, with its messages, run by the `regex` crate.

use std::fmt;

use regex::RegexBuilder;

mod class;
mod escape;
mod group;
mod names;
mod parser;

/// Largest pattern in bytes; the memory of the parser grows with it by a factor of hundreds.
const MAX_PATTERN: usize = 64 << 10;
/// Largest compiled program in bytes.
const SIZE_LIMIT: usize = 10 << 20;
/// Largest cache of states while a text is searched, in bytes.
const DFA_SIZE_LIMIT: usize = 2 << 20;
/// Largest nesting of a pattern after translation: the compiler of the crate is recursive.
const NEST_LIMIT: u32 = 500;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex(regex::Regex);

/// An error of Go's `regexp/syntax`; displayed as ``error parsing regexp: missing closing ): `(` ``.
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

impl Regex {
    /// The compiled pattern.
    ///
    /// The limits are lower than Go's: 64 KiB of pattern, 10 MiB of program, a nesting of some hundreds.
    ///
    /// # Errors
    ///
    /// Go's message for a pattern that it does not compile, `expression too large` or `expression nests too deeply`
    /// for one beyond a limit.
    pub fn compile(pattern: &str) -> Result<Regex, SyntaxError> {
        if pattern.len() > MAX_PATTERN {
            return Err(SyntaxError::new(Code::Large, pattern));
        }
        let translated = parser::translate(pattern)?;
        let built = RegexBuilder::new(&translated)
            .size_limit(SIZE_LIMIT)
            .dfa_size_limit(DFA_SIZE_LIMIT)
            .nest_limit(NEST_LIMIT)
            .build();
        built.map(Regex).map_err(|error| {
            // The parser has refused everything else that the crate would.
            let is_large = matches!(error, regex::Error::CompiledTooBig(_));
            SyntaxError::new(if is_large { Code::Large } else { Code::NestingDepth }, pattern)
        })
    }

    /// Whether the pattern matches anywhere in a text: `text.matches(pattern)`.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// The first match, empty if there is none: `text.find(pattern)`.
    pub fn find<'t>(&self, text: &'t str) -> &'t str {
        self.0.find(text).map_or("", |found| found.as_str())
    }

    /// The matches from left to right without overlap, all if the limit is negative: `text.findAll(pattern, limit)`.
    pub fn find_all<'t>(&self, text: &'t str, limit: i64) -> Vec<&'t str> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.0.find_iter(text).take(limit).map(|found| found.as_str()).collect()
    }
}
