//! The state of a translation: the position in the root field, and the findings so far.
//!
//! The other files add the steps of the translation as methods of [`Lower`]; they call each other,
//! because a schema contains schemas.

// DESIGN.md, 283: Steps of a translation are methods of its state, and imports lead downwards only

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::graph::{Cycle, Graph};
use crate::crd::faults::Faults;

/// A marked field.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::crd) struct Mark {
    /// Names in JSON from the root field on.
    pub(in crate::crd) path: Vec<String>,
    /// The keys of a column; `None` for a selectable field.
    pub(in crate::crd) column: Option<Value>,
}

/// The translation of a root field, with the current position in it.
#[derive(Debug)]
pub(super) struct Lower<'a> {
    /// Schemas of the types that are referred to, by name.
    pub(super) definitions: &'a Map<String, Value>,
    /// The references between them.
    pub(super) graph: Graph,
    /// Receiver of the errors and warnings of all root fields.
    pub(super) faults: &'a mut Faults,
    /// Steps from the root field to the current position; part of each message.
    pub(super) path: Vec<String>,
    /// Number of steps to the value that is translated: a field of a kind has one.
    pub(super) root: usize,
    /// Maps by names around the current position, whose keys are listed as fields.
    pub(super) named_maps: usize,
    /// Cycles of types on the way to the current position; the last is the innermost.
    pub(super) cycles: Vec<Cycle>,
    /// Types that were cut, with their places.
    pub(super) cut_types: BTreeMap<String, BTreeSet<Vec<String>>>,
    /// Marked fields so far.
    pub(super) marks: Vec<Mark>,
    /// Schemas that were translated so far.
    pub(super) nodes: usize,
    /// Restrictions that could not be expressed so far.
    pub(super) losses: usize,
}

impl<'a> Lower<'a> {
    /// Begins at the root.
    pub(super) fn new(definitions: &'a Map<String, Value>, faults: &'a mut Faults) -> Self {
        Self {
            definitions,
            graph: Graph::of(definitions),
            faults,
            path: Vec::new(),
            root: 0,
            named_maps: 0,
            cycles: Vec::new(),
            cut_types: BTreeMap::new(),
            marks: Vec::new(),
            nodes: 0,
            losses: 0,
        }
    }

    /// Moves down into a field of a kind.
    pub(super) fn enter_root(&mut self, field: &str) {
        self.enter(field);
        self.root = self.path.len();
    }

    /// Whether the current position is that of the value as a whole.
    pub(super) fn is_at_root(&self) -> bool {
        self.path.len() == self.root
    }

    /// Moves down into a field.
    ///
    /// Each call is followed by a call of `leave`, otherwise later messages name a wrong field.
    pub(super) fn enter(&mut self, step: &str) {
        self.path.push(step.to_owned());
    }

    /// Moves back up.
    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    /// Adds an error at the current position.
    pub(super) fn fault(&mut self, message: &str) {
        let place = self.place();
        self.faults.add(format!("{place}: {message}"));
    }

    /// Adds a warning at the current position.
    pub(super) fn warn(&mut self, message: &str) {
        let place = self.place();
        self.faults.warn(format!("{place}: {message}"));
    }

    /// Adds a remark at the current position: an API server checks less than serde, as was asked
    /// for.
    pub(super) fn note(&mut self, message: &str) {
        let place = self.place();
        self.faults.note(format!("{place}: {message}"));
    }

    /// Adds a remark about a place below the current position, with which the text begins.
    pub(super) fn remark(&mut self, below: &str, is_note: bool) {
        let text = format!("{}{below}", self.place());
        if is_note {
            self.faults.note(text);
        } else {
            self.faults.warn(text);
        }
    }

    /// Steps to the current position.
    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    /// The current position, for error texts.
    fn place(&self) -> String {
        if self.path.is_empty() {
            "the type".to_owned()
        } else {
            format!(".{}", self.path.join("."))
        }
    }
}
