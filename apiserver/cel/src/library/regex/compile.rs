//! Compilation of patterns, and searches.

use regex::RegexBuilder;

use super::{Code, Pattern, SyntaxError};

/// Largest compiled program in bytes.
const SIZE_LIMIT: usize = 10 << 20;
/// Largest cache of states while a text is searched, in bytes.
const DFA_SIZE_LIMIT: usize = 2 << 20;
/// Largest nesting of a translated pattern that is compiled on the stack of the caller: the
/// compiler is recursive and takes some kilobytes for each level.
const NEST_LIMIT: u32 = 64;
/// Largest nesting of all, for which a thread with [`DEEP_STACK`] compiles. About a third of Go's
/// limit.
const DEEP_NEST_LIMIT: u32 = 1000;
/// Bytes of stack for a deep pattern.
const DEEP_STACK: usize = 32 << 20;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex {
    regex: regex::Regex,
    items: u64,
}

impl Regex {
    /// The compiled pattern.
    ///
    /// The limits are lower than Go's: 64 KiB of pattern, 10 MiB of program, a nesting of 1000
    /// where a group is about three levels.
    ///
    /// # Errors
    ///
    /// Go's message for a pattern that it does not compile, `expression too large` or
    /// `expression nests too deeply` for a pattern beyond a limit.
    pub fn compile(pattern: &str) -> Result<Regex, SyntaxError> {
        Pattern::parse(pattern)?.compile()
    }

    /// Number of the items of the pattern, each as often as repeated: a bound of the time that a
    /// character of a text takes.
    pub fn items(&self) -> u64 {
        self.items
    }
    /// Whether the pattern matches anywhere in a text: `text.matches(pattern)`.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The first match, empty if there is none: `text.find(pattern)`.
    pub fn find<'t>(&self, text: &'t str) -> &'t str {
        self.regex.find(text).map_or("", |found| found.as_str())
    }

    /// The matches from left to right without overlap, all if the limit is negative:
    /// `text.findAll(pattern, limit)`.
    pub fn find_all<'t>(&self, text: &'t str, limit: i64) -> Vec<&'t str> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.regex.find_iter(text).take(limit).map(|found| found.as_str()).collect()
    }
}

impl Pattern<'_> {
    /// The compiled pattern.
    ///
    /// # Errors
    ///
    /// A pattern that is too large or nested too deeply.
    pub fn compile(self) -> Result<Regex, SyntaxError> {
        // The parser has refused everything that the crate would, except for expressions that are
        // too deep or too large.
        let built = match build(&self.translated, NEST_LIMIT) {
            Err(regex::Error::Syntax(_)) => build_deep(self.translated),
            built => built,
        };
        built.map(|regex| Regex { regex, items: self.weight.items }).map_err(|error| {
            let is_large = matches!(error, regex::Error::CompiledTooBig(_));
            SyntaxError::new(if is_large { Code::Large } else { Code::NestingDepth }, self.pattern)
        })
    }
}

fn build(translated: &str, nest_limit: u32) -> Result<regex::Regex, regex::Error> {
    RegexBuilder::new(translated)
        .size_limit(SIZE_LIMIT)
        .dfa_size_limit(DFA_SIZE_LIMIT)
        .nest_limit(nest_limit)
        .build()
}

/// Compiles a pattern on a separate stack.
fn build_deep(translated: String) -> Result<regex::Regex, regex::Error> {
    let too_deep = || regex::Error::Syntax("no stack".to_owned());
    let thread = std::thread::Builder::new().stack_size(DEEP_STACK);
    let built =
        thread.spawn(move || build(&translated, DEEP_NEST_LIMIT)).map_err(|_| too_deep())?;
    built.join().map_err(|_| too_deep())?
}
