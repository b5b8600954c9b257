//! Readers of whole namespaces and of label selectors, found by the labels of a changed object.
//!
//! A selector with an equality is found by that label alone, so that a change is compared with the
//! selectors that may match, and not with all.

// DESIGN.md, 175: `watch_by` takes the way to read as a value, and labels are one

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ReadTarget;
use windlass_core::resource::{ObjectKey, Selector};

/// The objects of a namespace, or of all, whose labels match.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadSelection {
    /// `None` for all namespaces.
    pub(crate) namespace: Option<Box<str>>,
    pub(crate) labels: Selector,
}

/// Labels of a state of an object, keys and values.
pub(crate) type Labels<'a> = Vec<(&'a str, &'a str)>;

impl ReadSelection {
    fn matches(&self, labels: &Labels<'_>) -> bool {
        self.labels.matches_with(&|key| {
            labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
        })
    }
}

/// Readers of each selection.
type ReadersBySelection = BTreeMap<Arc<ReadSelection>, BTreeSet<ObjectKey>>;

/// Readers of all selections of a source.
#[derive(Default)]
pub(super) struct Selections {
    everywhere: NamespaceReaders,
    namespaces: BTreeMap<Box<str>, NamespaceReaders>,
}

/// Readers of the selections of a namespace, or of all.
#[derive(Default)]
struct NamespaceReaders {
    /// By key and value of a label that every selected object has.
    by_label: BTreeMap<Box<str>, BTreeMap<Box<str>, ReadersBySelection>>,
    /// Selections without such a label.
    others: ReadersBySelection,
}

impl Selections {
    pub(super) fn is_empty(&self) -> bool {
        self.everywhere.is_empty() && self.namespaces.is_empty()
    }

    pub(super) fn add(&mut self, selection: Arc<ReadSelection>, reader: &ObjectKey) {
        let scope = match &selection.namespace {
            None => &mut self.everywhere,
            Some(namespace) => self.namespaces.entry(namespace.clone()).or_default(),
        };
        scope.add(selection, reader);
    }

    pub(super) fn remove(&mut self, selection: &ReadSelection, reader: &ObjectKey) {
        let Some(namespace) = &selection.namespace else {
            return self.everywhere.remove(selection, reader);
        };
        if let Some(scope) = self.namespaces.get_mut(namespace) {
            scope.remove(selection, reader);
            if scope.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
    }

    /// Calls `each` with the readers of all selections that match a state before or after a change
    /// of the object `key`; a state that is `None` did not exist.
    pub(super) fn concerned(
        &self,
        key: &ObjectKey,
        states: &[Option<Labels<'_>>; 2],
        each: &mut impl FnMut(ReadTarget, &ObjectKey),
    ) {
        let near = key.namespace().and_then(|namespace| self.namespaces.get(namespace));
        for scope in near.into_iter().chain([&self.everywhere]) {
            scope.concerned(states, each);
        }
    }
}

impl NamespaceReaders {
    fn is_empty(&self) -> bool {
        self.by_label.is_empty() && self.others.is_empty()
    }

    fn add(&mut self, selection: Arc<ReadSelection>, reader: &ObjectKey) {
        let readers = match selection.labels.required_label() {
            None => &mut self.others,
            Some((key, value)) => {
                self.by_label.entry(key.into()).or_default().entry(value.into()).or_default()
            }
        };
        readers.entry(selection).or_default().insert(reader.clone());
    }

    fn remove(&mut self, selection: &ReadSelection, reader: &ObjectKey) {
        let Some((key, value)) = selection.labels.required_label() else {
            return remove_from(&mut self.others, selection, reader);
        };
        let Some(values) = self.by_label.get_mut(key) else { return };
        if let Some(readers) = values.get_mut(value) {
            remove_from(readers, selection, reader);
            if readers.is_empty() {
                values.remove(value);
            }
        }
        if values.is_empty() {
            self.by_label.remove(key);
        }
    }

    fn concerned(
        &self,
        states: &[Option<Labels<'_>>; 2],
        each: &mut impl FnMut(ReadTarget, &ObjectKey),
    ) {
        let [old, new] = states;
        let mut call = |readers: &ReadersBySelection| {
            for (selection, readers) in readers {
                if states.iter().flatten().any(|labels| selection.matches(labels)) {
                    let target = || ReadTarget::Selection(Arc::clone(selection));
                    readers.iter().for_each(|reader| each(target(), reader));
                }
            }
        };
        if old.is_some() || new.is_some() {
            call(&self.others);
        }
        let before: &[(&str, &str)] = old.as_deref().unwrap_or_default();
        let after = new.iter().flatten().filter(|label| !before.contains(label));
        for (key, value) in before.iter().chain(after) {
            let readers = self.by_label.get(*key).and_then(|values| values.get(*value));
            readers.into_iter().for_each(&mut call);
        }
    }
}

/// Removes a reader of a selection, and the selection with the last reader.
fn remove_from(all: &mut ReadersBySelection, selection: &ReadSelection, reader: &ObjectKey) {
    if let Some(readers) = all.get_mut(selection) {
        readers.remove(reader);
        if readers.is_empty() {
            all.remove(selection);
        }
    }
}
