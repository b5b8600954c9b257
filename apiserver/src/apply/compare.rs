//! Difference between two versions of an object, as sets of paths.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::items;
use super::path::{PathElement, equal};
use super::set::PathSet;
use super::validate::{check_scalar, join};
use crate::typed::{Id, ListMerge, ObjectType, TypeTable, ValueTreatment};

/// The difference between two objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// Leaves that only the old object has.
    pub(crate) removed: PathSet,
    /// Leaves whose value differs.
    pub(crate) modified: PathSet,
    /// Leaves that only the new object has.
    pub(crate) added: PathSet,
}

/// Compares two objects of a type.
///
/// # Errors
///
/// Values that do not have the type.
pub(crate) fn compare(
    table: &TypeTable,
    root: Id,
    old: &Value,
    new: &Value,
) -> Result<Comparison, String> {
    let mut walker = CompareWalker {
        table,
        path: Vec::new(),
        result: Comparison::default(),
        faults: Vec::new(),
    };
    walker.value(root, Some(old), Some(new));
    join(&walker.faults)?;
    Ok(walker.result)
}

/// A walk over both objects that collects differences and faults.
struct CompareWalker<'a> {
    table: &'a TypeTable,
    path: Vec<PathElement>,
    result: Comparison,
    faults: Vec<String>,
}

/// The old and the new value of a path; `None` for an absent value.
type ValuePair<'v> = (Option<&'v Value>, Option<&'v Value>);

impl CompareWalker<'_> {
    /// Compares two values of the same type; `None` is an absent value.
    fn value(&mut self, id: Id, old: Option<&Value>, new: Option<&Value>) {
        let left = self.table.kind(id, old);
        let right = self.table.kind(id, new);
        let leaf = match (old, new) {
            (_, None) => self.by_kind(left, (old, new)),
            (None, _) => self.by_kind(right, (old, new)),
            _ if left.same(&right) => self.by_kind(right, (old, new)),
            // The values are of different kinds: both are visited, so that the paths of each are
            // recorded.
            _ => {
                self.by_kind(left, (old, new));
                self.by_kind(right, (old, new))
            }
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.result.added.insert(&self.path),
                (_, None) => self.result.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares two values as the same kind; returns whether the path is a leaf.
    fn by_kind(&mut self, kind: ValueTreatment<'_>, (old, new): ValuePair<'_>) -> bool {
        match kind {
            ValueTreatment::Scalar(scalar) => {
                let check = |v: Option<&Value>| v.map_or(Ok(()), |v| check_scalar(scalar, v));
                // A single valid side is enough, as in upstream's comparison.
                if let (Err(old), Err(new)) = (check(old), check(new)) {
                    self.faults.push(format!("lhs: {old}"));
                    self.faults.push(format!("rhs: {new}"));
                    return true;
                }
                self.leaf((old, new));
                true
            }
            ValueTreatment::Map(object) => {
                let (l, r) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
                let empty = l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty);
                if object.atomic || empty {
                    self.leaf((old, new));
                    return true;
                }
                self.maps(object, l, r);
                false
            }
            ValueTreatment::List(kind, items) => {
                let (l, r) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
                let empty = l.is_none_or(Vec::is_empty) && r.is_none_or(Vec::is_empty);
                if kind.is_atomic() || empty {
                    self.leaf((old, new));
                    return true;
                }
                self.lists(kind, items, l, r);
                false
            }
        }
    }

    /// Records the path as added, removed or modified.
    fn leaf(&mut self, (old, new): ValuePair<'_>) {
        match (old, new) {
            (None, _) => self.result.added.insert(&self.path),
            (_, None) => self.result.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.result.modified.insert(&self.path),
            _ => {}
        }
    }

    /// Compares two maps key by key.
    fn maps(
        &mut self,
        object: &ObjectType,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
    ) {
        let keys: BTreeSet<&String> =
            old.into_iter().chain(new).flat_map(|map| map.keys()).collect();
        for key in keys {
            let Some(child) = TypeTable::child(object, key) else { continue };
            let (old, new) = (old.and_then(|m| m.get(key)), new.and_then(|m| m.get(key)));
            // Most fields of most updates. Equal values have no difference, and a fault of both
            // was found when the types were checked.
            if old.is_some() && old == new {
                continue;
            }
            self.path.push(PathElement::field(key));
            self.value(child, old, new);
            self.path.pop();
        }
    }

    /// Compares two lists item by item, by the identity of the items.
    fn lists(
        &mut self,
        kind: &ListMerge,
        items: Id,
        old: Option<&Vec<Value>>,
        new: Option<&Vec<Value>>,
    ) {
        // Several items may have the same step: stored lists are not always free of duplicates.
        let mut pairs: BTreeMap<PathElement, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for (list, is_new) in [(old, false), (new, true)] {
            for (index, item) in list.into_iter().flatten().enumerate() {
                match items::step(self.table, kind, items, item) {
                    Ok(step) => {
                        let pair = pairs.entry(step).or_default();
                        if is_new { pair.1.push(item) } else { pair.0.push(item) }
                    }
                    Err(text) => self.faults.push(format!("element {index}: {text}")),
                }
            }
        }
        for (step, (old, new)) in pairs {
            self.path.push(step);
            self.item(items, &old, &new);
            self.path.pop();
        }
    }

    /// Compares an item of a list; an item that occurs several times is a single leaf.
    fn item(&mut self, items: Id, old: &[&Value], new: &[&Value]) {
        match (old.len(), new.len()) {
            (0 | 1, 0 | 1) => self.value(items, old.first().copied(), new.first().copied()),
            (0 | 1, _) => {
                if let Some(old) = old.first() {
                    self.value(items, Some(old), None);
                }
                self.result.added.insert(&self.path);
            }
            (_, 0 | 1) => {
                if let Some(new) = new.first() {
                    self.value(items, None, Some(new));
                }
                self.result.removed.insert(&self.path);
            }
            _ => {
                let same =
                    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| equal(old, new));
                if !same {
                    self.result.modified.insert(&self.path);
                }
            }
        }
    }
}
