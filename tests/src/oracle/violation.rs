//! A broken promise, with the events that led to the violation.

use std::fmt;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `G-C1` … `G-C9`.
    pub promise: &'static str,
    /// The listener, reader or cache.
    pub observer: String,
    /// The object; empty when the violation is about all.
    pub key: String,
    /// The observed state, and the promised state.
    pub text: String,
    /// The key's last states at the server and the shown states, oldest first.
    pub before: Vec<String>,
}

impl Violation {
    /// Creates a violation about a whole cache.
    pub fn new(promise: &'static str, observer: &str, text: impl Into<String>) -> Self {
        Self {
            promise,
            observer: observer.to_owned(),
            key: String::new(),
            text: text.into(),
            before: Vec::new(),
        }
    }

    /// Makes the violation refer to `key`.
    #[must_use]
    pub fn of(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken for {}", self.promise, self.observer)?;
        if !self.key.is_empty() {
            write!(f, ", {}", self.key)?;
        }
        write!(f, ": {}", self.text)?;
        for line in &self.before {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}
