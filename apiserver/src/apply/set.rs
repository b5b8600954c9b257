//! Sets of paths, in the form of managedFields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::typed::{Id, TypeTable, ValueTreatment};

/// Deepest nesting of a stored set; deeper sets are refused. Real sets stay below 40.
const MAX_DEPTH: usize = 256;

/// A set of paths. Membership of a path says nothing about its parents and children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathSet {
    /// Members that end at this level.
    pub(crate) members: BTreeSet<PathElement>,
    /// Paths that go further, by their first step.
    pub(crate) children: BTreeMap<PathElement, PathSet>,
}

impl PathSet {
    /// Adds a path; the empty path is ignored.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    /// Adds a path of field names.
    pub(crate) fn insert_fields(&mut self, names: &[&str]) {
        let path: Vec<PathElement> = names.iter().map(|name| PathElement::field(name)).collect();
        self.insert(&path);
    }

    /// Whether the set has no member at any depth.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(PathSet::is_empty)
    }

    /// Returns the members of either set.
    pub(crate) fn union(mut self, other: &PathSet) -> PathSet {
        self.members.extend(other.members.iter().cloned());
        for (step, set) in &other.children {
            match self.children.get_mut(step) {
                Some(mine) => *mine = std::mem::take(mine).union(set),
                None => {
                    self.children.insert(step.clone(), set.clone());
                }
            }
        }
        self
    }

    /// Returns the members of both sets.
    pub(crate) fn intersection(&self, other: &PathSet) -> PathSet {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(step, set)| {
            let both = set.intersection(other.children.get(step)?);
            (!both.is_empty()).then(|| (step.clone(), both))
        });
        PathSet { members, children: children.collect() }
    }

    /// Returns the members of this set that are not in the other set; parents and children are
    /// different paths.
    pub(crate) fn difference(&self, other: &PathSet) -> PathSet {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(step, set)| {
            let left = match other.children.get(step) {
                Some(theirs) => set.difference(theirs),
                None => set.clone(),
            };
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        PathSet { members, children: children.collect() }
    }

    /// Returns the members of this set that are neither in the other set nor below a member of that
    /// set.
    pub(crate) fn recursive_difference(&self, other: &PathSet) -> PathSet {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(step, set)| {
            if other.members.contains(step) {
                return None;
            }
            let left = match other.children.get(step) {
                Some(theirs) => set.recursive_difference(theirs),
                None => set.clone(),
            };
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        PathSet { members, children: children.collect() }
    }

    /// Returns the set with every declared field on the way to a member.
    pub(crate) fn with_named_fields(&self, table: &TypeTable, id: Option<Id>) -> PathSet {
        let kind = id.map(|id| table.kind(id, None));
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        for (step, set) in &self.children {
            let child = match (&kind, step) {
                (Some(ValueTreatment::Map(object)), PathElement::Field(name)) => {
                    if object.fields.contains_key(&**name) {
                        members.insert(step.clone());
                    }
                    TypeTable::child(object, name)
                }
                (Some(ValueTreatment::List(_, items)), PathElement::Key(_)) => Some(*items),
                _ => None,
            };
            children.insert(step.clone(), set.with_named_fields(table, child));
        }
        PathSet { members, children }
    }

    /// Calls `f` with every member; at each level members come before deeper paths.
    pub(crate) fn each(&self, f: &mut dyn FnMut(&[PathElement])) {
        self.each_below(&mut Vec::new(), f);
    }

    /// Calls `f` with every member below a path.
    fn each_below(&self, path: &mut Vec<PathElement>, f: &mut dyn FnMut(&[PathElement])) {
        for step in &self.members {
            path.push(step.clone());
            f(path);
            path.pop();
        }
        for (step, set) in &self.children {
            path.push(step.clone());
            set.each_below(path, f);
            path.pop();
        }
    }

    /// Returns the set in the form of `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        self.write(false)
    }

    /// Writes a level; `own` if its path itself is a member.
    fn write(&self, own: bool) -> Value {
        let mut map = Map::new();
        // A member that also has members below is marked by `.`.
        if own && !(self.members.is_empty() && self.children.is_empty()) {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for step in &self.members {
            if !self.children.contains_key(step) {
                map.insert(step.serialize(), Value::Object(Map::new()));
            }
        }
        for (step, set) in &self.children {
            map.insert(step.serialize(), set.write(self.members.contains(step)));
        }
        Value::Object(map)
    }

    /// Reads a set in the form of `fieldsV1`.
    ///
    /// # Errors
    ///
    /// A description of the part that cannot be read.
    pub(crate) fn from_json(value: &Value) -> Result<PathSet, String> {
        Self::read(value, 0).map(|(set, _)| set)
    }

    /// Returns the set of a level, and whether the path of that level is a member.
    fn read(value: &Value, depth: usize) -> Result<(PathSet, bool), String> {
        let map = value.as_object().ok_or_else(|| format!("expected a map, got {value}"))?;
        // The depth comes from a client: without a limit the recursion could overflow the stack.
        if depth > MAX_DEPTH {
            return Err("too deeply nested".to_owned());
        }
        let mut set = PathSet::default();
        // An empty object stands for the path alone.
        let mut own = map.is_empty();
        for (key, value) in map {
            if key == "." {
                own = true;
                continue;
            }
            let step = PathElement::parse(key)?;
            let (child, member) = Self::read(value, depth + 1)?;
            if member {
                set.members.insert(step.clone());
            }
            if !child.members.is_empty() || !child.children.is_empty() {
                set.children.insert(step, child);
            }
        }
        Ok((set, own))
    }
}

/// Returns a path in the form of messages: `.spec.ports[port=80]`.
pub(crate) fn print(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
