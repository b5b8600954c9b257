//! A broken promise, with what led to it.

use std::fmt;

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `G-C1` … `G-C9`.
    pub promise: &'static str,
    /// Which listener, reader or cache.
    pub who: String,
    /// Which object; empty when it is about all.
    pub key: String,
    /// What happened, and what should have.
    pub text: String,
    /// The key's last states at the server and what was shown of them, oldest first.
    pub before: Vec<String>,
}

impl Violation {
    /// A violation about a whole cache.
    pub fn new(promise: &'static str, who: &str, text: impl Into<String>) -> Self {
        Self {
            promise,
            who: who.to_owned(),
            key: String::new(),
            text: text.into(),
            before: Vec::new(),
        }
    }

    /// The same about `key`.
    #[must_use]
    pub fn of(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken for {}", self.promise, self.who)?;
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
