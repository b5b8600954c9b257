//! Faults of a definition, and remarks about one that an API server takes.

use std::cell::RefCell;

use crate::error::{Error, ErrorKind};

/// Collects the faults of the types.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Faults that make a definition impossible, each once.
    errors: Vec<String>,
    /// Faults that the API server will not check, each once.
    warnings: Vec<String>,
    /// Fields that the API server will not check because their types are kept whole, each once.
    notes: Vec<String>,
}

impl Faults {
    /// Adds a fault that makes a definition impossible.
    pub(super) fn add(&mut self, message: String) {
        // A position may be translated more than once, and the fault is reported once.
        if !self.errors.contains(&message) {
            self.errors.push(message);
        }
    }

    /// Adds a fault that the API server will not check.
    pub(super) fn warn(&mut self, message: String) {
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    /// Adds a field that the API server will not check because the type is kept whole.
    pub(super) fn note(&mut self, message: String) {
        if !self.notes.contains(&message) {
            self.notes.push(message);
        }
    }

    /// Returns all errors as a single error; warnings and notes are logged, or collected.
    pub(super) fn into_result(mut self, tried: &str) -> Result<(), Error> {
        let notes = std::mem::take(&mut self.notes);
        for warning in self.into_warnings(tried)? {
            report_warning(tried, warning);
        }
        for note in notes {
            report_note(tried, note);
        }
        Ok(())
    }

    /// Returns the warnings and the notes, or all errors as a single error.
    pub(super) fn into_warnings(self, tried: &str) -> Result<Vec<String>, Error> {
        if self.errors.is_empty() {
            return Ok([self.warnings, self.notes].concat());
        }
        let message = format!("cannot {tried}: {}", self.errors.join("; "));
        Err(Error::new(ErrorKind::Usage, message))
    }
}

/// A text about a definition that an API server takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    pub(crate) text: String,
    /// Whether the author of the type asked for the effect, so that an operator's start logs the
    /// remark at debug level only.
    pub(crate) is_note: bool,
}

thread_local! {
    /// Receiver of the remarks about definitions on this thread; without a receiver remarks are
    /// logged.
    static COLLECTED: RefCell<Option<Vec<Diagnostic>>> = const { RefCell::new(None) };
}

/// Calls `derive` and returns the remarks that would be logged.
pub(crate) fn collect<R>(derive: impl FnOnce() -> R) -> (R, Vec<Diagnostic>) {
    let outer = COLLECTED.with(|it| it.replace(Some(Vec::new())));
    let result = derive();
    let found = COLLECTED.with(|it| it.replace(outer));
    (result, found.unwrap_or_default())
}

/// As [`collect`]; returns the texts, each once: the versions of a kind share most types.
pub(super) fn collect_warnings<R>(derive: impl FnOnce() -> R) -> (R, Vec<String>) {
    let (result, found) = collect(derive);
    let mut texts: Vec<String> = Vec::new();
    for remark in found {
        if !texts.contains(&remark.text) {
            texts.push(remark.text);
        }
    }
    (result, texts)
}

/// Logs a warning, or hands it to [`collect`].
fn report_warning(tried: &str, text: String) {
    COLLECTED.with(|it| match &mut *it.borrow_mut() {
        Some(found) => found.push(Diagnostic { text, is_note: false }),
        None => tracing::warn!("{tried}: {text}"),
    });
}

/// Logs a note, or hands it to [`collect`].
fn report_note(tried: &str, text: String) {
    COLLECTED.with(|it| match &mut *it.borrow_mut() {
        Some(found) => found.push(Diagnostic { text, is_note: true }),
        None => tracing::debug!("{tried}: {text}"),
    });
}

#[cfg(test)]
mod tests {
    use super::{collect_warnings, report_note, report_warning};

    #[test]
    fn a_remark_about_several_versions_is_returned_once() {
        let ((), found) = collect_warnings(|| {
            report_warning("derive v1", ".spec.a: unchecked".to_owned());
            report_note("derive v1", ".spec.b: kept".to_owned());
            report_warning("derive v1beta1", ".spec.a: unchecked".to_owned());
        });
        assert_eq!(found, [".spec.a: unchecked", ".spec.b: kept"]);
    }
}
