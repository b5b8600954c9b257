//! Patterns in Go's RE2 syntax, by the engine of the CEL functions.

use std::sync::{Arc, OnceLock};

use windlass_cel::library::regex::{Pattern as Syntax, Regex};

/// A pattern, compiled when the first text is compared: a definition may have thousands of them, and
/// some take a second.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    source: String,
    /// `None` for a pattern beyond the limits of the engine; it matches no text.
    regex: Arc<OnceLock<Option<Regex>>>,
}

impl Pattern {
    /// Returns the pattern; [`error`] returns the reason for a failure.
    pub(crate) fn compile(source: &str) -> Pattern {
        Pattern { source: source.to_owned(), regex: Arc::default() }
    }

    /// Whether the pattern matches anywhere in the text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let regex = self.regex.get_or_init(|| Regex::compile(&self.source).ok());
        regex.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Returns the pattern as it was written.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
}

/// Returns the reason why Go cannot compile a pattern, in its words.
pub(crate) fn error(source: &str) -> Option<String> {
    Syntax::parse(source).err().map(|error| error.to_string())
}
