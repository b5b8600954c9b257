//! Collection of every fault of a derive, so that all of them are reported at once.

use std::fmt::Display;

use proc_macro2::{Ident, Span, TokenStream};

/// The faults found so far. Panics when dropped without [`Errors::finish`], because a fault that is
/// not reported is a wrong program that compiles.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    /// In the order in which they were found, which is the order of the messages.
    faults: Vec<syn::Error>,
    /// Known keys in the order in which they were read, with their positions.
    keys: Vec<Ident>,
    /// Whether the faults became part of the output.
    finished: bool,
}

impl Errors {
    /// Adds a fault at `span`.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.faults.push(syn::Error::new(span, message));
    }

    /// Adds a fault of the parser.
    pub(crate) fn add(&mut self, fault: syn::Error) {
        self.faults.push(fault);
    }

    /// Runs `step` and keeps the fault, if any.
    pub(crate) fn keep<T>(&mut self, step: syn::Result<T>) -> Option<T> {
        step.map_err(|fault| self.add(fault)).ok()
    }

    /// Remembers a known key, so that the output can refer to its documentation.
    pub(crate) fn saw(&mut self, key: &Ident) {
        self.keys.push(key.clone());
    }

    /// Takes the known keys that were read.
    pub(crate) fn take_keys(&mut self) -> Vec<Ident> {
        std::mem::take(&mut self.keys)
    }

    /// Returns the texts so far.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> Vec<String> {
        self.faults.iter().map(ToString::to_string).collect()
    }

    /// Returns the faults as `compile_error!` items; empty when there are none.
    pub(crate) fn finish(mut self) -> TokenStream {
        self.finished = true;
        self.faults.iter().map(syn::Error::to_compile_error).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            // A second panic would hide the first.
            self.finished || std::thread::panicking(),
            "a derive dropped its faults without reporting them"
        );
    }
}
