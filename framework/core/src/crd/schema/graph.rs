//! The references between types, and the cycles of types that contain each other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// The types that each type refers to, directly and at all.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Names in the schema of each type.
    direct: BTreeMap<String, BTreeSet<String>>,
    /// Names that can be reached from each type.
    reached: BTreeMap<String, BTreeSet<String>>,
}

/// A cycle of types that is entered.
#[derive(Debug)]
pub(super) struct Cycle {
    /// The type at which the cycle was entered.
    pub(super) entry: String,
    /// Least number of references from there to each type of the cycle.
    pub(super) distances: BTreeMap<String, usize>,
    /// References of the cycle on the way to the current position.
    pub(super) depth: usize,
}

impl Graph {
    /// Reads the references of all types.
    pub(super) fn of(definitions: &Map<String, Value>) -> Self {
        let mut graph = Self::default();
        for (name, schema) in definitions {
            let mut found = BTreeSet::new();
            references(schema, &mut found);
            graph.direct.insert(name.clone(), found);
        }
        for name in graph.direct.keys() {
            let mut reached = BTreeSet::new();
            let mut open = vec![name];
            while let Some(next) = open.pop() {
                let fresh = graph.direct.get(next).into_iter().flatten();
                open.extend(fresh.filter(|name| reached.insert((*name).clone())));
            }
            graph.reached.insert(name.clone(), reached);
        }
        graph
    }

    /// Whether two types contain each other, or a type contains itself.
    pub(super) fn is_cycle(&self, one: &str, other: &str) -> bool {
        let reaches =
            |from: &str, to: &str| self.reached.get(from).is_some_and(|names| names.contains(to));
        reaches(one, other) && reaches(other, one)
    }

    /// The cycle of a type, entered at that type.
    pub(super) fn cycle(&self, entry: &str) -> Cycle {
        let mut distances = BTreeMap::from([(entry.to_owned(), 0)]);
        let mut layer = vec![entry];
        for distance in 1.. {
            let mut next = Vec::new();
            for name in layer.iter().flat_map(|name| self.direct.get(*name).into_iter().flatten()) {
                if self.is_cycle(entry, name) && !distances.contains_key(name) {
                    distances.insert(name.clone(), distance);
                    next.push(name.as_str());
                }
            }
            if next.is_empty() {
                break;
            }
            layer = next;
        }
        Cycle { entry: entry.to_owned(), distances, depth: 0 }
    }
}

/// Collects the names that a schema refers to.
fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(node) => {
            if let Some(Value::String(reference)) = node.get("$ref") {
                found.insert(name_of(reference));
            }
            node.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// The name at the end of a reference, without escapes.
pub(super) fn name_of(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    name.replace("~1", "/").replace("~0", "~")
}
