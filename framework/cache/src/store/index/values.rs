//! Index values: read from an object's bytes in a single pass for all indexes, into memory that a
//! batch shares.
//!
//! A Pod's bytes are scanned once for all declared paths, and members that lie on no path are
//! skipped. Nothing is allocated per object.

use std::fmt::{Display, Write};
use std::ops::Range;
use std::sync::Arc;

use super::index::{Evaluate, Evaluator};
use crate::store::object::{Decoded, Object, Path};
use windlass_core::wire::{PathTree, Scalar};

/// Computation of the values of all indexes, by the number of the index.
#[derive(Default)]
pub(in crate::store) struct IndexPlan {
    /// The paths as a tree, so that a single scan serves all.
    paths: PathTree,
    /// The same paths as a list.
    declared: Vec<(usize, Path)>,
    /// The functions, each with the number of the index.
    functions: Vec<(usize, Arc<dyn Evaluate>)>,
}

/// A value of an object in an index.
struct FoundValue {
    /// Number of the index.
    index: usize,
    /// Place in the text of [`Values`].
    text: Range<usize>,
}

/// The values of some objects.
#[derive(Default)]
pub(in crate::store) struct Values {
    /// The texts of all values, concatenated; those of removed values stay until the end.
    text: String,
    /// The values; those of the same object are neighbours.
    values: Vec<FoundValue>,
}

/// The values of an object, as a part of [`Values`].
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct ValueRange(Range<usize>);

impl IndexPlan {
    /// Builds the plan of the evaluators, numbered in their order.
    pub(in crate::store) fn new<'a>(evaluators: impl IntoIterator<Item = &'a Evaluator>) -> Self {
        let mut plan = Self::default();
        for (index, evaluator) in evaluators.into_iter().enumerate() {
            match evaluator {
                Evaluator::Path(path) => {
                    plan.paths.add(path, index);
                    plan.declared.push((index, path));
                }
                Evaluator::Function(function) => plan.functions.push((index, Arc::clone(function))),
            }
        }
        plan
    }

    /// Whether there is no index.
    pub(in crate::store) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.functions.is_empty()
    }

    /// Returns the paths, each with the number of the index.
    pub(in crate::store) fn declared(&self) -> &[(usize, Path)] {
        &self.declared
    }

    /// Returns all paths as a single tree.
    pub(in crate::store) fn paths(&self) -> &PathTree {
        &self.paths
    }

    /// Appends the object's values; those of each index are sorted and distinct. Paths are read
    /// from the object as `received`, functions get the object that is kept. May run user code:
    /// never call this under a lock.
    pub(in crate::store) fn evaluate(
        &self,
        received: &Object,
        object: &Arc<Object>,
        into: &mut Values,
    ) -> ValueRange {
        let first = into.values.len();
        if !self.paths.is_empty() {
            // Values that are kept beside an object replace those in the object's bytes.
            let indexed = received.detached().by_index(&self.declared);
            received.visit(&self.paths, &mut |index, scalar| match scalar {
                _ if indexed.iter().any(|(indexed, _)| *indexed == index) => {}
                Scalar::Text(text) => into.add_text(index, &text),
                number @ Scalar::Number(_) => into.add(index, &number),
            });
            for (index, values) in &indexed {
                values.iter().for_each(|value| into.add_text(*index, value));
            }
        }
        // Keeps the decoded object for the next function.
        let mut decoded: Option<Decoded> = None;
        for (index, function) in &self.functions {
            let before = into.values.len();
            if !function.values(object, &mut decoded, &mut |value| into.add(*index, value)) {
                // The values of a function that failed do not count.
                into.values.truncate(before);
            }
        }
        into.settle(first)
    }
}

impl Values {
    /// Adds a value by its text.
    fn add(&mut self, index: usize, value: &dyn Display) {
        let start = self.text.len();
        // A value whose `Display` fails is no value.
        if write!(self.text, "{value}").is_ok() {
            self.values.push(FoundValue { index, text: start..self.text.len() });
        }
    }

    /// Adds a text; unlike [`add`](Self::add) this function needs no formatting.
    fn add_text(&mut self, index: usize, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.values.push(FoundValue { index, text: start..self.text.len() });
    }

    /// Sorts the values that were added since `first`, and removes duplicates.
    fn settle(&mut self, first: usize) -> ValueRange {
        let text = &self.text;
        let key = |value: &FoundValue| (value.index, &text[value.text.clone()]);
        let added = &mut self.values[first..];
        // Most objects have a single value, or their values in order: nothing to sort then.
        if !added.is_sorted_by(|a, b| key(a) < key(b)) {
            added.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
            let mut kept = first;
            for at in first..self.values.len() {
                if at == first || key(&self.values[at]) != key(&self.values[kept - 1]) {
                    self.values.swap(kept, at);
                    kept += 1;
                }
            }
            self.values.truncate(kept);
        }
        ValueRange(first..self.values.len())
    }

    /// Returns the part of an object with these values in the first index.
    #[cfg(test)]
    pub(in crate::store) fn part(&mut self, texts: impl Iterator<Item = String>) -> ValueRange {
        let first = self.values.len();
        texts.for_each(|text| self.add(0, &text));
        self.settle(first)
    }

    /// Returns the values of a part in an index, sorted.
    pub(in crate::store) fn of(&self, part: &ValueRange, index: usize) -> Texts<'_> {
        let values = self.values.get(part.0.clone()).unwrap_or_default();
        let start = values.partition_point(|value| value.index < index);
        let length = values[start..].partition_point(|value| value.index == index);
        Texts { text: &self.text, values: &values[start..start + length] }
    }
}

/// Sorted, distinct texts.
#[derive(Clone, Copy)]
pub(in crate::store) struct Texts<'a> {
    /// The texts of all values.
    text: &'a str,
    /// The values of an object in an index, in the order of their texts.
    values: &'a [FoundValue],
}

impl<'a> Texts<'a> {
    /// Number of texts.
    pub(in crate::store) fn len(&self) -> usize {
        self.values.len()
    }

    /// Iterates in ascending order.
    pub(in crate::store) fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let Self { text, values } = *self;
        values.iter().map(move |value| &text[value.text.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sorted_and_distinct_by_index() {
        let mut values = Values::default();
        let all = [(1, "b"), (0, "x"), (1, "a"), (1, "b"), (0, "w"), (3, "z"), (1, "a")];
        values.add(0, &"before");
        let first = values.values.len();
        all.iter().for_each(|(index, text)| values.add(*index, text));
        let part = values.settle(first);
        let texts = |index| values.of(&part, index).iter().collect::<Vec<_>>();
        assert_eq!(texts(0), ["w", "x"]);
        assert_eq!(texts(1), ["a", "b"]);
        assert!(texts(2).is_empty());
        assert_eq!(texts(3), ["z"]);
        assert_eq!(values.of(&ValueRange::default(), 0).len(), 0);
    }
}
