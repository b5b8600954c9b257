//! Patterns in Go's RE2 syntax, by the engine of the CEL functions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use windlass_cel::library::regex::{Pattern as Syntax, Regex};

/// Ranges of characters that all patterns of a definition may have together, each counted with its
/// repetitions: memory and time of the compilation grow with this number, and each range alone may
/// take a second.
const MOST_RANGES: u64 = 4_000_000;

/// The ranges that are left to the patterns of a definition.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicU64>);

impl Default for Budget {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(MOST_RANGES)))
    }
}

impl Budget {
    /// Takes ranges; false if too few are left.
    fn take(&self, ranges: u64) -> bool {
        let taken = |left: u64| left.checked_sub(ranges);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

/// A pattern, compiled when the first text is compared: a definition may have thousands of them,
/// and some take a second.
#[derive(Clone, Debug)]
pub(crate) struct SchemaPattern {
    source: String,
    /// Budget of all patterns of the definition together.
    budget: Budget,
    /// `None` for a pattern beyond the limits of the engine or of the definition; such a pattern
    /// matches no text.
    regex: Arc<OnceLock<Option<Regex>>>,
}

impl SchemaPattern {
    /// Returns the pattern; [`error`] returns the reason for a failure.
    pub(crate) fn compile(source: &str, budget: &Budget) -> SchemaPattern {
        SchemaPattern { source: source.to_owned(), budget: budget.clone(), regex: Arc::default() }
    }

    /// Whether the pattern matches anywhere in the text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| {
            let syntax = Syntax::parse(&self.source).ok()?;
            self.budget.take(syntax.ranges()).then_some(())?;
            syntax.compile().ok()
        });
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Returns the pattern as written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

/// Returns the reason why Go cannot compile a pattern, in Go's words.
pub(crate) fn error(source: &str) -> Option<String> {
    Syntax::parse(source).err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_one_definition_are_bounded_together() {
        let budget = Budget::default();
        let source = "[a-z0-9]{900}x|y";
        let patterns: Vec<SchemaPattern> =
            (0..4_000).map(|_| SchemaPattern::compile(source, &budget)).collect();
        let ranges = Syntax::parse(source).unwrap().ranges();
        // Spent without compiling thousands of programs, which the bound prevents.
        while budget.take(ranges * 2) {}
        assert!(patterns[0].matches("y"), "one more is left");
        assert!(patterns[0].matches("y"), "it is compiled once");
        assert!(!patterns[1..].iter().any(|pattern| pattern.matches("y")));
        assert!(
            SchemaPattern::compile(source, &Budget::default()).matches("y"),
            "others have their own"
        );
    }
}
