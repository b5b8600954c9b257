//! Merge of an applied configuration into an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::items;
use super::path::PathElement;
use super::validate::{check_scalar, join};
use crate::typed::{Id, ListMerge, ObjectType, ScalarType, TypeTable, ValueTreatment};

/// Returns `live` with the values of `applied`; nothing is removed.
///
/// # Errors
///
/// Values that do not have the type.
pub(crate) fn merge(
    table: &TypeTable,
    root: Id,
    live: &Value,
    applied: &Value,
) -> Result<Value, String> {
    let mut walker = MergingWalker { table, faults: Vec::new() };
    let merged = walker.value(root, Some(live), Some(applied));
    join(&walker.faults)?;
    Ok(merged.unwrap_or(Value::Null))
}

/// Checks that no field of a value is null, which the language of policies takes for a separate
/// value.
///
/// # Errors
///
/// The place of the first null, and the type that the field should have.
pub(super) fn nulls(table: &TypeTable, id: Id, value: &Value, place: &str) -> Result<(), String> {
    match (table.kind(id, Some(value)), value) {
        (kind, Value::Null) => {
            let wanted = match kind {
                ValueTreatment::Map(_) => "map",
                ValueTreatment::List(..) => "list",
                ValueTreatment::Scalar(Some(ScalarType::Boolean)) => "boolean",
                ValueTreatment::Scalar(Some(ScalarType::Integer | ScalarType::Number)) => {
                    "numeric (int or float)"
                }
                ValueTreatment::Scalar(_) => "string",
            };
            Err(format!("{place}: expected {wanted}, got &{{NULL_VALUE}}"))
        }
        (ValueTreatment::Map(object), Value::Object(map)) => {
            map.iter().try_for_each(|(key, value)| {
                let child = TypeTable::child(object, key).unwrap_or(TypeTable::ANY);
                nulls(table, child, value, &format!("{place}.{key}"))
            })
        }
        _ => Ok(()),
    }
}

/// Adds the places of lists, maps and structures in a value that are replaced as a whole.
pub(super) fn atomics(
    table: &TypeTable,
    id: Id,
    value: &Value,
    place: &str,
    found: &mut Vec<String>,
) {
    match (table.kind(id, Some(value)), value) {
        (ValueTreatment::Map(object), Value::Object(map)) => {
            found.extend(object.atomic.then(|| place.to_owned()));
            for (key, value) in map {
                // Fields only: the keys of a map are keys of values.
                let Some(field) = object.fields.get(key.as_str()) else { continue };
                atomics(table, field.node, value, &format!("{place}.{key}"), found);
            }
        }
        (ValueTreatment::List(kind, items), Value::Array(list)) => {
            found.extend(kind.is_atomic().then(|| place.to_owned()));
            for (index, item) in list.iter().enumerate() {
                atomics(table, items, item, &format!("{place}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// A walk over both objects that collects faults.
struct MergingWalker<'a> {
    table: &'a TypeTable,
    faults: Vec<String>,
}

/// Items of a list with their steps. An item whose step occurs twice has no value.
struct Indexed<'v> {
    /// Steps in the order of the list, duplicates included.
    steps: Vec<PathElement>,
    /// Items by step.
    values: BTreeMap<PathElement, Option<&'v Value>>,
}

static NULL: Value = Value::Null;

impl Indexed<'_> {
    /// Returns the item at a step; null for an item whose step occurs twice.
    fn get(&self, step: &PathElement) -> Option<&Value> {
        self.values.get(step).map(|value| value.unwrap_or(&NULL))
    }

    /// Whether a step occurs.
    fn has(&self, step: &PathElement) -> bool {
        self.values.contains_key(step)
    }
}

impl MergingWalker<'_> {
    /// Merges two values of the same type; `None` is an absent value.
    fn value(&mut self, id: Id, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
        let left = self.table.kind(id, live);
        let right = self.table.kind(id, applied);
        // The applied value decides about the kind: such a value replaces a live value of another
        // kind.
        let kind = if applied.is_none() { left } else { right };
        match kind {
            ValueTreatment::Scalar(scalar) => {
                let check = |v: Option<&Value>| v.map_or(Ok(()), |v| check_scalar(scalar, v));
                if let (Err(live), Err(applied)) = (check(live), check(applied)) {
                    self.faults.push(format!("lhs: {live}"));
                    self.faults.push(format!("rhs: {applied}"));
                }
                applied.or(live).cloned()
            }
            ValueTreatment::Map(object) => {
                let (l, r) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
                let empty = l.is_none_or(Map::is_empty) && r.is_none_or(Map::is_empty);
                if object.atomic || empty {
                    return applied.or(live).cloned();
                }
                self.maps(object, l, r)
            }
            ValueTreatment::List(kind, items) => {
                let (l, r) = (live.and_then(Value::as_array), applied.and_then(Value::as_array));
                let empty = l.is_none_or(Vec::is_empty) && r.is_none_or(Vec::is_empty);
                if kind.is_atomic() || empty {
                    return applied.or(live).cloned();
                }
                self.lists(kind, items, l, r)
            }
        }
    }

    /// Merges two maps key by key; `None` for an empty result.
    fn maps(
        &mut self,
        object: &ObjectType,
        live: Option<&Map<String, Value>>,
        applied: Option<&Map<String, Value>>,
    ) -> Option<Value> {
        let keys: BTreeSet<&String> =
            live.into_iter().chain(applied).flat_map(|map| map.keys()).collect();
        let mut out = Map::new();
        for key in keys {
            let (l, r) = (live.and_then(|m| m.get(key)), applied.and_then(|m| m.get(key)));
            let Some(child) = TypeTable::child(object, key) else { continue };
            if let Some(value) = self.value(child, l, r) {
                out.insert(key.clone(), value);
            }
        }
        (!out.is_empty()).then_some(Value::Object(out))
    }

    /// Indexes the items of a list; `duplicates` allows items to occur more than once.
    fn index<'v>(
        &mut self,
        kind: &ListMerge,
        items: Id,
        list: Option<&'v Vec<Value>>,
        duplicates: bool,
    ) -> Indexed<'v> {
        let mut indexed = Indexed { steps: Vec::new(), values: BTreeMap::new() };
        for (index, item) in list.into_iter().flatten().enumerate() {
            match items::step(self.table, kind, items, item) {
                Err(text) => self.faults.push(format!("element {index}: {text}")),
                Ok(step) if indexed.has(&step) => {
                    if duplicates {
                        // Items that occur twice are not merged.
                        indexed.values.insert(step.clone(), None);
                        indexed.steps.push(step);
                    } else {
                        self.faults.push(format!("duplicate entries for key {step}"));
                    }
                }
                Ok(step) => {
                    indexed.values.insert(step.clone(), Some(item));
                    indexed.steps.push(step);
                }
            }
        }
        indexed
    }

    /// Merges two lists item by item; `None` for an empty result.
    fn lists(
        &mut self,
        kind: &ListMerge,
        items: Id,
        live_list: Option<&Vec<Value>>,
        applied_list: Option<&Vec<Value>>,
    ) -> Option<Value> {
        // Duplicates are a fault of the applied list only: a stored list may have them.
        let applied = self.index(kind, items, applied_list, false);
        let live = self.index(kind, items, live_list, true);
        // Without valid steps the order of the items cannot be computed.
        if !self.faults.is_empty() {
            return None;
        }
        let live_list: &[Value] = live_list.map_or(&[], Vec::as_slice);
        let mut out = Vec::with_capacity(live.steps.len().max(applied.steps.len()));
        for pick in interleave(&live, &applied) {
            out.extend(match pick {
                // By position: the step of a duplicate would find no value.
                MergedItem::Live(index) => self.value(items, live_list.get(index), None),
                MergedItem::Applied(step) => self.value(items, live.get(step), applied.get(step)),
            });
        }
        (!out.is_empty()).then_some(Value::Array(out))
    }
}

/// The next item of a merged list.
enum MergedItem<'s> {
    /// An item that is only live; by position, since the step may occur twice.
    Live(usize),
    /// An item that is applied, and perhaps live.
    Applied(&'s PathElement),
}

/// Returns the order of a merged list: shared items come in the applied order, the others keep
/// their place relative to the shared items around.
fn interleave<'s>(live: &'s Indexed<'_>, applied: &'s Indexed<'_>) -> Vec<MergedItem<'s>> {
    let mut out = Vec::new();
    let mut shared: VecDeque<&PathElement> =
        applied.steps.iter().filter(|step| live.has(step)).collect();
    let mut merged: BTreeSet<&PathElement> = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    while l < live.steps.len() || r < applied.steps.len() {
        if let (Some(mine), Some(theirs)) = (live.steps.get(l), applied.steps.get(r)) {
            if mine == theirs {
                merged.insert(theirs);
                out.push(MergedItem::Applied(theirs));
                l += 1;
                r += 1;
                shared.pop_front();
                continue;
            }
            // `mine` is shared, but another shared item comes first in the applied order: `mine` is
            // emitted when that order reaches it.
            if applied.has(mine) && shared.front().is_some_and(|next| *next != mine) {
                l += 1;
                continue;
            }
        }
        if let Some(mine) = live.steps.get(l) {
            if !applied.has(mine) {
                out.push(MergedItem::Live(l));
                l += 1;
                continue;
            }
            if merged.contains(mine) {
                l += 1;
            }
        }
        if let Some(theirs) = applied.steps.get(r) {
            merged.insert(theirs);
            out.push(MergedItem::Applied(theirs));
            r += 1;
            if shared.front() == Some(&theirs) {
                shared.pop_front();
            }
        }
    }
    out
}
