//! Search for fields that a type does not have.

use serde_json::{Map, Value};

use super::TypeSchema;
use super::table::{Id, ObjectType, TypeShape, TypeTable};

/// Returns the paths of unknown fields.
pub(super) fn unknown(schema: &TypeSchema, value: &Value) -> Vec<String> {
    let mut finder = Finder { table: schema.table(), path: String::new(), found: Vec::new() };
    finder.read(schema.root(), value);
    finder.found
}

/// Removes unknown fields and returns their paths.
pub(super) fn drop_unknown(schema: &TypeSchema, value: &mut Value) -> Vec<String> {
    let mut finder = Finder { table: schema.table(), path: String::new(), found: Vec::new() };
    finder.cut(schema.root(), value);
    finder.found
}

/// A walk over a value that collects unknown fields.
struct Finder<'a> {
    table: &'a TypeTable,
    path: String,
    found: Vec<String>,
}

impl Finder<'_> {
    /// Finds unknown fields.
    fn read(&mut self, id: Id, value: &Value) {
        let table = self.table;
        match (table.shape(id), value) {
            (TypeShape::Object(object), Value::Object(map)) => {
                for (key, value) in map {
                    match known(object, key) {
                        Some(id) => self.below(key, |finder| finder.read(id, value)),
                        None => self.report(key),
                    }
                }
            }
            (TypeShape::List(_, items), Value::Array(list)) => {
                for (index, item) in list.iter().enumerate() {
                    self.at(index, |finder| finder.read(*items, item));
                }
            }
            _ => {}
        }
    }

    /// Finds and removes unknown fields.
    fn cut(&mut self, id: Id, value: &mut Value) {
        let table = self.table;
        match (table.shape(id), value) {
            (TypeShape::Object(object), Value::Object(map)) => self.cut_map(object, map),
            (TypeShape::List(_, items), Value::Array(list)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.at(index, |finder| finder.cut(*items, item));
                }
            }
            _ => {}
        }
    }

    /// Finds and removes unknown fields of a map.
    fn cut_map(&mut self, object: &ObjectType, map: &mut Map<String, Value>) {
        map.retain(|key, value| match known(object, key) {
            Some(id) => {
                self.below(key, |finder| finder.cut(id, value));
                true
            }
            None => {
                self.report(key);
                false
            }
        });
    }

    /// Records the path of an unknown field.
    fn report(&mut self, key: &str) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.found.push(format!("{}{dot}{key}", self.path));
    }

    /// Visits a field, with the name added to the path.
    fn below(&mut self, key: &str, run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        run(self);
        self.path.truncate(length);
    }

    /// Visits an item, with the index added to the path.
    fn at(&mut self, index: usize, run: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(&format!("[{index}]"));
        run(self);
        self.path.truncate(length);
    }
}

/// Returns the type of a key; `None` for an unknown key.
fn known(object: &ObjectType, key: &str) -> Option<Id> {
    match object.fields.get(key) {
        Some(field) => Some(field.node),
        // Tolerated by apply, but unknown to validation and pruning.
        None if object.implied => None,
        None => object.element,
    }
}
